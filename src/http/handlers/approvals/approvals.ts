/** Approvals as the owner, the holder of a spend key and a developer see them, and the wait for a decision. */
import { MINUTE_MS } from '../../../domain/durations.ts';
import { uuidOf, wireId } from '../../../domain/ids.ts';
import { dollarsOf } from '../../../domain/money.ts';
import type {
  ApprovalReply,
  ApprovalsQuery,
  ApprovalsReply,
  WaitQuery,
} from '../../../schemas/approvals.ts';
import type { KeyOwner } from '../../../store/accounts/api-keys.ts';
import {
  findApprovalFor,
  listApprovals,
  type Approval,
  type ApprovalView,
} from '../../../store/approvals/approval.ts';
import type { Decider } from '../../../store/approvals/decide-approval.ts';
import { settleApprovals } from '../../../store/approvals/settle-approvals.ts';
import { authenticateAgain, credentialOf } from '../../authenticate.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { WAITS } from '../../fair-shares.ts';
import { idIn, noSuch } from '../../look-ups.ts';
import { listPage } from '../../pagination.ts';
import type { Api } from '../../services.ts';
import { approvalsPage } from '../budgets/budget-errors.ts';
import { seenBy } from '../budgets/budgets.ts';

/** Waits for the decision without a connection to the database. */
export async function getApproval(
  api: Api,
  request: Request<undefined, WaitQuery>,
): Promise<Reply<ApprovalReply>> {
  const { caller, params, query } = request;
  const { accountId } = caller;
  const { wait = 0 } = query;
  const askedAt = performance.now();
  const look = async () => {
    await authenticateAgain(api.database, caller, 'asker');
    const view = await viewOf(api, caller);
    const seen = await getSeen(api, view, params);
    // For those that wait, the watch does this for all at once.
    if (seen.status !== 'pending' || wait > 0) return seen;
    await settleApprovals(api.database, { ids: [seen.id] });
    return getSeen(api, view, params);
  };
  const inQueueMsMax = Math.max(wait * 1_000, WAITS.waitMsMax);
  const found = await api.shares.waits.run(caller, look, inQueueMsMax);
  // The time in the queue was a part of the wait.
  const leftMs = Math.max(askedAt + wait * 1_000 - performance.now(), 0);
  const waitMs = canAnswerAtOnce(api, found) ? 0 : leftMs;
  const credential = credentialOf(caller);
  const decided = await api.approvals.wait(found.id, accountId, credential, waitMs, request);
  return { status: 200, body: wireApproval(api, caller, decided ?? found) };
}

/** Longer than the commit of a decision takes, and a second more, after which every process heeds it. */
const HEEDED_AFTER_MS = MINUTE_MS;

/**
 * Whether the answer need not wait for the watch: it changes no process's decision, or was given so long ago that every
 * process heeds it.
 */
function canAnswerAtOnce({ clock }: Api, { status, decidedAt }: Approval): boolean {
  if (status === 'pending') return false;
  return status !== 'approved' || Date.parse(decidedAt ?? '') < clock.nowMs() - HEEDED_AFTER_MS;
}

/** Newest first. */
export async function getApprovals(
  api: Api,
  { caller, query }: Request<undefined, ApprovalsQuery>,
): Promise<Reply<ApprovalsReply>> {
  const view = await payerView(api, caller);
  const { accountId } = caller;
  await settleApprovals(api.database, { accountId });
  const { status, budgetId } = query;
  const filter = { status, budgetId: budgetId && uuidOf('budget', budgetId) };
  const { rows, ...marks } = await listPage(query, 'approval', (page) =>
    listApprovals(api.database, accountId, view, filter, page),
  );
  const approvals = rows.map((each) => wireApproval(api, caller, each));
  return { status: 200, body: { approvals, ...marks } };
}

async function viewOf(api: Api, caller: KeyOwner): Promise<ApprovalView> {
  if (caller.kind !== 'developer') return payerView(api, caller);
  return { kind: 'developer', developerNumber: caller.developerNumber };
}

export async function payerView(api: Api, caller: KeyOwner): Promise<Decider> {
  const { ledger, consumerId, root } = await seenBy(api, caller);
  return { kind: 'payer', ledger, consumerId, root, spendKey: caller.spend?.number ?? 0 };
}

export async function getSeen(
  api: Api,
  view: ApprovalView,
  params: Request['params'],
): Promise<Approval> {
  const id = idIn('approval', params);
  const found = id && (await findApprovalFor(api.database, view, id));
  if (!found) throw noSuch('approval');
  return found;
}

const NO_KEY = { keyId: null, keyName: null } as const;

export function wireApproval(api: Api, reader: KeyOwner, approval: Approval): ApprovalReply {
  const { budgetId, limitMicros, raisedToMicros } = approval;
  // The key is the payer's. A developer is not told which of its agents asks.
  const { keyId, keyName } = reader.kind === 'developer' ? NO_KEY : approval;
  const id = wireId('approval', approval.id);
  return {
    id,
    status: approval.status,
    code: approval.code,
    budgetId: budgetId === null ? null : wireId('budget', budgetId),
    budgetName: maySeeBudget(reader, approval) ? approval.budgetName : null,
    scope: approval.scope,
    limit: limitMicros === null ? null : dollarsOf(limitMicros),
    keyId: keyId === null ? null : wireId('key', keyId),
    keyName,
    developerId: wireId('developer', approval.developerId),
    tool: approval.tool,
    amount: dollarsOf(approval.amountMicros),
    reason: mayRead(reader, approval) && approval.reason !== '' ? approval.reason : null,
    askedBy: approval.askedBy,
    decision: approval.decision,
    raisedTo: raisedToMicros === null ? null : dollarsOf(raisedToMicros),
    used: approval.isUsed,
    approvalUrl: `${approvalsPage(api.config.consoleUrl)}?approval=${id}`,
    createdAt: approval.createdAt,
    expiresAt: approval.expiresAt,
    decidedAt: approval.decidedAt,
  };
}

/** Who reads a budget by its id reads its name here: not a developer, and not the holder of a key below it. */
function maySeeBudget({ kind, spend }: KeyOwner, { budgetPath }: Approval): boolean {
  if (kind === 'developer') return false;
  return spend === null || (budgetPath?.includes(spend.path.at(-1) ?? 0) ?? false);
}

/** The holder of the key writes to the owner, not to the developer. */
function mayRead({ kind }: KeyOwner, { askedBy }: Approval): boolean {
  return kind !== 'developer' || askedBy === 'developer';
}
