/**
 * The steps of an approval's workflow. Each may run twice: conditions on the row decide, and a mail may
 * arrive twice. They return no personal data and nothing that a caller wrote, since histories keep it.
 */
import { ApplicationFailure } from '@temporalio/activity';
import {
  canAnswer,
  type AnswerKind,
  type ApprovalStatus,
  type AskableCode,
  type Decision,
} from '../src/domain/approval.ts';
import { DAY_MS, HOUR_MS } from '../src/domain/durations.ts';
import { microsOfDollars } from '../src/domain/money.ts';
import { approvalMail } from '../src/mail/approval.ts';
import { isSettled, type Mail, type MailOutcome } from '../src/mail/send.ts';
import { findOwnerEmail } from '../src/store/accounts/accounts.ts';
import { findApproval, type Approval } from '../src/store/approvals/approval.ts';
import { decideApproval, type Answer } from '../src/store/approvals/decide-approval.ts';
import { noteBegun, noteMailed } from '../src/store/approvals/progress.ts';
import { settleApprovals } from '../src/store/approvals/settle-approvals.ts';
import type { Database } from '../src/store/database.ts';
import { rowIdOf } from './row-id.ts';

export interface SeenApproval {
  readonly status: ApprovalStatus;
  readonly code: AskableCode;
  readonly decision: Decision | null;
  readonly expiresInMs: number;
  readonly isMailed: boolean;
}

export interface ApprovalDeps {
  readonly database: Database;
  /** The signed link with which the owner decides. */
  readonly linkTo: (approval: Approval) => string;
  readonly send: (mail: Mail) => Promise<MailOutcome>;
}

export type ApprovalActivities = ReturnType<typeof createApprovalActivities>;

export function createApprovalActivities({ database, linkTo, send }: ApprovalDeps) {
  return {
    /** Reads the approval, and ends it if it has expired or if nothing refuses its call any more. */
    async settleApproval(approvalId: string): Promise<SeenApproval> {
      const id = rowIdOf('approval', approvalId);
      await noteBegun(database, id);
      await settleApprovals(database, { ids: [id] });
      return seenOf(approvalId, await findApproval(database, id));
    },

    /** Or why there is nothing to send. Throws when another attempt may succeed. */
    async mailApproval(approvalId: string): Promise<MailOutcome | 'ended'> {
      const id = rowIdOf('approval', approvalId);
      const approval = await findApproval(database, id);
      // By an earlier attempt, whose end was lost.
      if (approval?.isMailed) return 'sent';
      if (approval?.status !== 'pending') return 'ended';
      const recipient = await findOwnerEmail(database, approval.accountId);
      if (recipient === null) return 'ended';
      const outcome = await send(approvalMail(recipient, approval, linkTo(approval)));
      if (!isSettled(outcome)) {
        throw ApplicationFailure.create({
          type: 'no_mail_server',
          message: 'This worker has no SMTP_URL. A worker that has one may make the next attempt.',
          nextRetryDelay: retryMsWithoutServer(approval),
        });
      }
      if (outcome === 'sent') await noteMailed(database, id);
      return outcome;
    },

    async decideApproval(
      approvalId: string,
      asked: { readonly decision: AnswerKind; readonly limit?: number | string },
    ): Promise<SeenApproval> {
      const id = rowIdOf('approval', approvalId);
      const found = await findApproval(database, id);
      const answer = answerOf(asked);
      if (!found || !answer || !canAnswer(found.code, answer.kind)) {
        throw refused('That is not an answer to this approval. Nothing was changed.');
      }
      const decided = await decideApproval(database, id, answer);
      if (decided.kind !== 'decided') throw refused(WHY[decided.kind]);
      return seenOf(approvalId, decided.approval);
    },
  };
}

/**
 * As long as the approval has already waited, but at least an hour and at most a day. Each attempt costs a
 * line in the log and an action in Temporal. So while no worker has a mail server, an approval of seven days
 * costs only a dozen of each.
 */
function retryMsWithoutServer({ createdAt }: Approval): number {
  const waitedMs = Date.now() - Date.parse(createdAt);
  return Math.min(Math.max(waitedMs, HOUR_MS), DAY_MS);
}

const WHY = {
  closed: 'The approval has ended. Nothing was changed.',
  not_a_raise: 'The limit is already that high. Nothing was changed.',
  budget_closed: 'The budget has expired. Nothing was changed.',
  too_many_developers: 'The budget has too many approved developers. Nothing was changed.',
  unknown_approval: 'There is no such approval.',
} as const;

function refused(message: string): ApplicationFailure {
  return ApplicationFailure.nonRetryable(message, 'approval_closed');
}

function answerOf(asked: {
  readonly decision: AnswerKind;
  readonly limit?: number | string;
}): Answer | undefined {
  switch (asked.decision) {
    case 'once':
    case 'always':
    case 'deny':
      return { kind: asked.decision };
    case 'raise': {
      const limitMicros = microsOfDollars(asked.limit ?? '');
      return limitMicros === undefined ? undefined : { kind: 'raise', limitMicros };
    }
    // Only the owner pays.
    case 'top_up':
      return undefined;
  }
}

function seenOf(approvalId: string, approval: Approval | null): SeenApproval {
  if (!approval) throw ApplicationFailure.nonRetryable(`${approvalId} not found`, 'not_found');
  const { status, code, decision, expiresInMs, isMailed } = approval;
  return { status, code, decision, expiresInMs, isMailed };
}
