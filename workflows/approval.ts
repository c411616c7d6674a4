/**
 * An approval, until the owner of the account has decided or it expires. It mails the owner, records the expiry and
 * shows the approval in the UI. Postgres decides: an answer by key, in the console or by a link is committed
 * before this workflow is told of it. The update `decide` writes the same row, for operators. A requested
 * cancellation has no effect: it would end the workflow but not the question, and the owner might never be
 * mailed.
 */
import {
  ActivityFailure,
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  condition,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { ApprovalActivities, SeenApproval } from '../activities/approvals.ts';
import { ANSWERS, canAnswer } from '../src/domain/approval.ts';
import { mailTaskQueue } from '../src/domain/task-queues.ts';
import { changedAttribute } from './changed-attribute.ts';
import * as messages from './messages.ts';
import type { ApprovalDecision, ApprovalInput, ApprovalView } from './messages.ts';
import { UNTIL_IT_SUCCEEDS } from './until-it-succeeds.ts';

// There is nothing else to do, and the owner can decide without it too.
const { settleApproval } = proxyActivities<ApprovalActivities>({
  ...UNTIL_IT_SUCCEEDS,
  summary: 'Read the approval',
});
const { decideApproval } = proxyActivities<ApprovalActivities>({
  startToCloseTimeout: '15s',
  heartbeatTimeout: '5s',
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '10s' },
  summary: 'Record the decision',
});

interface Run {
  readonly approvalId: string;
  /** Undefined until the row was read. */
  seen: SeenApproval | undefined;
  /** How the mail ended; undefined until then. */
  mailed: Awaited<ReturnType<ApprovalActivities['mailApproval']>> | undefined;
  expiresAtMs: number;
  isNudged: boolean;
}

export async function approval({ approvalId }: ApprovalInput): Promise<ApprovalView> {
  const run: Run = {
    approvalId,
    seen: undefined,
    mailed: undefined,
    expiresAtMs: Infinity,
    isNudged: false,
  };
  listen(run);
  return CancellationScope.nonCancellable(() => untilItEnds(run));
}

async function untilItEnds(run: Run): Promise<ApprovalView> {
  const { approvalId } = run;
  const mailing = new CancellationScope();
  for (let isFirst = true; ; isFirst = false) {
    run.isNudged = false; // the read below sees everything signaled so far
    const seen = await settleApproval(approvalId);
    run.seen = seen;
    run.expiresAtMs = Date.now() + seen.expiresInMs;
    display(run, seen);
    if (seen.status !== 'pending') break;
    // Runs during the wait: a mail server that is down must not keep the owner from deciding.
    if (isFirst && !seen.isMailed) {
      void mailing.run(() => mail(run)).catch(() => {});
    }
    await condition(() => run.isNudged, Math.max(seen.expiresInMs, 1), {
      summary: 'Wait for the decision or the expiry',
    });
  }
  mailing.cancel();
  await condition(allHandlersFinished);
  return viewOf(run);
}

async function mail(run: Run): Promise<void> {
  const { mailApproval } = proxyActivities<ApprovalActivities>({
    taskQueue: mailTaskQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '30s',
    heartbeatTimeout: '5s',
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '10m' },
    summary: 'Email the owner',
  });
  run.mailed = await mailApproval(run.approvalId);
  if (run.seen?.status === 'pending') display(run, run.seen);
}

const DATA = '`{"decision": "once"}`; or "always", "deny", or "raise" with a `limit` in dollars';

function listen(run: Run): void {
  setHandler(
    messages.decide,
    (decision) =>
      CancellationScope.nonCancellable(async () => {
        await condition(() => run.seen !== undefined);
        refuseLate(run, decision);
        run.seen = await decideApproval(run.approvalId, decision).catch(throwCause);
        run.isNudged = true;
        return viewOf(run);
      }),
    {
      validator: (decision) => refuseLate(run, decision),
      description: `For operators: decides for the owner. Send ${DATA}.`,
    },
  );
  setHandler(messages.approvalDecided, () => void (run.isNudged = true), {
    description: 'The owner has decided, or nothing refuses the call any more: reads it now.',
  });
  setHandler(messages.approvalStatus, () => viewOf(run), {
    description: 'The status and the decision when the approval was last read.',
  });
}

/** Before anything is written to the history, where the state is known already. The UI sends any text, or none. */
function refuseLate({ seen, expiresAtMs }: Run, sent: Partial<ApprovalDecision> | null = {}): void {
  const decision = ANSWERS.find((answer) => answer === sent?.decision);
  if (decision === undefined) throw refusal(`Send ${DATA}. Nothing was changed.`);
  if (!seen) return;
  if (seen.status !== 'pending') {
    throw refusal(`The approval is already ${seen.status}. Nothing was changed.`);
  }
  if (Date.now() >= expiresAtMs) throw refusal('The approval has expired. Nothing was changed.');
  if (!canAnswer(seen.code, decision)) {
    throw refusal(`"${decision}" is not a valid decision after ${seen.code}. Nothing was changed.`);
  }
}

/** Tells the sender of the update the reason, not just that a step failed. */
function throwCause(error: unknown): never {
  throw error instanceof ActivityFailure && error.cause instanceof ApplicationFailure
    ? error.cause
    : error;
}

function refusal(message: string): ApplicationFailure {
  return ApplicationFailure.nonRetryable(message, 'approval_closed');
}

function viewOf({ seen }: Run): ApprovalView {
  return { status: seen?.status ?? 'pending', decision: seen?.decision ?? null };
}

function display({ mailed }: Run, { status, code, decision, isMailed }: SeenApproval): void {
  const changed = [
    ...changedAttribute('ApprovalStatus', 'KEYWORD', status),
    ...changedAttribute('WaitingFor', 'KEYWORD', status === 'pending' ? 'owner' : undefined),
  ];
  if (changed.length > 0) upsertSearchAttributes(changed);
  setCurrentDetails(
    status === 'pending'
      ? `**Pending**. A call was refused with \`${code}\`. ${mailText(isMailed ? 'sent' : mailed)} No action needed:` +
          ' the approval ends when the owner decides, when nothing refuses the call any more, or when it expires.'
      : `Ended: **${status}**${decision === null ? '' : ` (\`${decision}\`)`}. No action needed.`,
  );
}

function mailText(mailed: Run['mailed']): string {
  if (mailed === 'sent') return 'The owner was emailed.';
  return mailed === 'refused'
    ? "The mail server refuses the owner's address, so the owner sees the request only in the console."
    : 'The owner has not been emailed yet.';
}
