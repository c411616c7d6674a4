/** Deciding an approval by key or in the console. approval-page.ts decides by a signed link. */
import { ANSWERS, canAnswer, shortfallOf, type AnswerKind } from '../../../domain/approval.ts';
import { ApiError } from '../../../domain/errors.ts';
import { wireId } from '../../../domain/ids.ts';
import { dollarsOf, formatDollars, type Micros } from '../../../domain/money.ts';
import { TOP_UP_MICROS_MIN } from '../../../domain/top-up.ts';
import type { DecisionBody, DecisionReply } from '../../../schemas/approvals.ts';
import {
  hasKeyEnded,
  type Approval,
  type ApprovalView,
} from '../../../store/approvals/approval.ts';
import {
  decideApproval,
  mayDecide,
  type Answer,
  type Decided,
} from '../../../store/approvals/decide-approval.ts';
import { settleApprovals } from '../../../store/approvals/settle-approvals.ts';
import type { Actor } from '../../../store/audit/actor.ts';
import { getCounters } from '../../../store/balance/consumers.ts';
import { findByKey } from '../../../store/top-ups/top-ups.ts';
import { credentialOf } from '../../authenticate.ts';
import { amountOf, CHARGEABLE } from '../../amounts.ts';
import { afterCommit } from '../../answer-errors.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { invalidField } from '../../invalid-field.ts';
import { noSuch } from '../../look-ups.ts';
import { keyReused } from '../../repeated-requests.ts';
import { REPLAYED } from '../../respond.ts';
import type { Api } from '../../services.ts';
import { LIMIT } from '../budgets/budgets.ts';
import { sessionUrlOf, startTopUp } from '../top-ups/top-ups.ts';
import { getSeen, payerView, wireApproval } from './approvals.ts';

export async function postDecision(
  api: Api,
  request: Request<DecisionBody>,
): Promise<Reply<DecisionReply>> {
  const { caller, params, body } = request;
  const view = await payerView(api, caller);
  const approval = await getSeen(api, view, params);
  if (!(await mayDecide(api.database, view, approval.id))) {
    throw new ApiError(
      'delegation_not_allowed',
      'A spend key cannot decide its own requests. If its budget has mayDelegate, it can decide those of the budgets below its own.',
    );
  }
  demandFitting(approval, body);
  await settleApprovals(api.database, { ids: [approval.id] });
  const { approval: decided, ...bankPage } =
    body.decision === 'top_up'
      ? await topUp(api, request, view)
      : {
          approval: await decide(
            api,
            approval,
            answerOf(approval, body.decision, body.limit),
            credentialOf(caller),
          ),
        };
  return {
    status: 200,
    body: { ...wireApproval(api, caller, decided), ...bankPage },
    // Another decision than the earlier one is refused above.
    ...(approval.status !== 'pending' && { headers: REPLAYED }),
  };
}

/** Returns what the decision's own transaction read. Throws the ApiError of a decision that could not be made. */
export async function decide(
  api: Api,
  approval: Approval,
  answer: Answer,
  by: Actor,
): Promise<Approval> {
  const decided = await decideApproval(api.database, approval.id, answer, by);
  if (decided.kind !== 'decided') throw errorOf(decided);
  const { consumerId, budget } = approval;
  if (budget !== null) api.budgets.forget({ consumerId, number: budget });
  return decided.approval;
}

export function answerOf(
  { scope }: Approval,
  decision: Exclude<AnswerKind, 'top_up'>,
  limit: number | string | undefined,
): Answer {
  if (decision !== 'raise') return { kind: decision };
  if (limit === undefined) throw invalidField('limit', 'limit is required with raise.');
  // As the budget itself accepts them.
  const rule = scope === 'per_call' ? CHARGEABLE : LIMIT;
  return { kind: decision, limitMicros: amountOf('limit', limit, rule) };
}

function demandFitting({ code }: Approval, { decision, limit, amount }: DecisionBody): void {
  if (!canAnswer(code, decision)) {
    const fitting = ANSWERS.filter((answer) => canAnswer(code, answer)).join(', ');
    throw invalidField('decision', `After ${code}, decision must be one of: ${fitting}.`);
  }
  const [extra] = [
    ...(limit !== undefined && decision !== 'raise' ? ['limit'] : []),
    ...(amount !== undefined && decision !== 'top_up' ? ['amount'] : []),
  ];
  if (extra === undefined) return;
  throw invalidField(extra, `${extra} cannot be combined with ${decision}.`);
}

/** Without a key of its own, the top-up of an approval happens once. */
async function topUp(
  api: Api,
  { caller, params, body, idempotencyKey: sentKey = '' }: Request<DecisionBody>,
  view: ApprovalView,
): Promise<{ readonly approval: Approval; readonly sessionUrl?: string }> {
  const approval = await getSeen(api, view, params);
  // The same answer again, after a lost reply.
  if (approval.decision === 'top_up') return { approval };
  if (approval.status !== 'pending') throw errorOf({ kind: 'closed', approval });
  const idempotencyKey = sentKey || wireId('approval', approval.id);
  const amount = body.amount ?? dollarsOf(await amountFor(api, approval, idempotencyKey));
  const asked = { caller, body: { amount }, idempotencyKey };
  const { topUp: made } = await startTopUp(api, asked, 'direct', TOP_UP_MICROS_MIN).catch(
    (error: unknown) => {
      const isReuse = error instanceof ApiError && error.code === 'idempotency_key_reused';
      throw isReuse && sentKey === ''
        ? keyReused(
            'This approval already has a top-up of another amount. To pay again, send a new Idempotency-Key.',
          )
        : error;
    },
  );
  return afterCommit(async () => {
    await settleApprovals(api.database, { ids: [approval.id] });
    return { approval: await getSeen(api, view, params), ...sessionUrlOf(api, made) };
  });
}

/** The shortfall when it was first asked for: the same request again is answered with the same top-up. */
async function amountFor(api: Api, approval: Approval, idempotencyKey: string): Promise<Micros> {
  const made = await findByKey(api.database, { ...approval, idempotencyKey });
  // An older one was made by another request.
  if (made && made.createdAt >= approval.createdAt) return made.amountMicros;
  return shortfallNow(api, approval);
}

/** At this moment. */
export async function shortfallNow(api: Api, approval: Approval): Promise<Micros> {
  const { balanceMicros, debtMicros } = await getCounters(api.database, approval);
  return shortfallOf({ amountMicros: approval.amountMicros, balanceMicros, debtMicros });
}

function errorOf(result: Exclude<Decided, { kind: 'decided' }>): ApiError {
  switch (result.kind) {
    case 'closed': {
      const { status, decision, decidedAt, expiresAt } = result.approval;
      return new ApiError(
        'approval_closed',
        hasKeyEnded(result.approval)
          ? `The key that asked can no longer pay, so the approval ended at ${decidedAt ?? ''}.`
          : status === 'expired'
            ? `The approval expired at ${expiresAt}.`
            : `The approval was already decided at ${decidedAt ?? ''}. The decision: ${decision ?? ''}.`,
        { facts: { status } },
      );
    }
    case 'not_a_raise':
      return new ApiError(
        'invalid_amount',
        `limit must be more than ${formatDollars(result.limitMicros)}, the current limit.`,
        { param: 'limit' },
      );
    case 'budget_closed':
      return new ApiError(
        'budget_closed',
        'The budget has expired, so the request can only be denied.',
      );
    case 'too_many_developers':
      return new ApiError(
        'invalid_request',
        'The budget already has the maximum number of approved developers. Remove one first.',
      );
    case 'unknown_approval':
      return noSuch('approval');
  }
}
