/** Approvals, as `Farebox.approvals` and `FareboxConsumer.approvals` have them. */
import type {
  ApprovalBody,
  ApprovalReply,
  ApprovalsReply,
  DecisionBody,
  DecisionReply,
} from './api.js';
import type { CallOptions, List, PageSize } from './index.js';
import type { Amount } from './money.js';

export interface WaitOptions {
  /** How long to wait in total. Default 300,000 (five minutes). */
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Asks the owner when a charge is refused, and waits for the decision. */
export interface AskOptions {
  /** The owner sees it. One line of at most 500 characters. */
  reason?: string | undefined;
  /** Seconds until the request expires, 60 to 604,800. Default 86,400. */
  expiresIn?: number | undefined;
  /**
   * How long charge(), or a paid call, waits for the decision. Default 300,000 (five minutes). The request
   * stays pending.
   */
  timeoutMs?: number | undefined;
}

/**
 * Asks the owner of an account to allow a call that a budget or the balance refuses. The service determines
 * what refuses the call. Throws `approval_not_needed` when nothing does, and `too_many_approvals`.
 */
export interface Approvals {
  /**
   * With a secret key: `apiKey` is the key that was refused. With a consumer key or spend key: `developerId` is the
   * developer that was called. The same request returns the same approval.
   */
  ask(
    request: Omit<ApprovalBody, 'amount'> & { amount?: Amount | undefined },
    options?: CallOptions,
  ): Promise<ApprovalReply>;
  get(id: string, options?: CallOptions): Promise<ApprovalReply>;
  /** Resolves when it is decided, or as `pending` when the time is over. Continues through an outage of Farebox. */
  wait(id: string, options?: WaitOptions): Promise<ApprovalReply>;
}

/**
 * For owners, with a consumer key. A spend key with `mayDelegate` sees and decides those of the budgets below
 * its own.
 */
export interface OwnerApprovals extends Approvals {
  /** Newest first. */
  list(
    filter?: PageSize & {
      status?: ApprovalReply['status'] | undefined;
      budgetId?: string | undefined;
    },
    options?: CallOptions,
  ): List<ApprovalReply, ApprovalsReply>;
  /** Throws `approval_closed` when it was decided before, or has expired. */
  decide(
    id: string,
    request: Pick<DecisionBody, 'decision'> & {
      /** With `raise`: the new limit in dollars. */
      limit?: Amount | undefined;
      /** With `top_up`: dollars, in whole cents. */
      amount?: Amount | undefined;
      /** With `top_up`: for another payment, after one that failed. Without it, an approval is paid for once. */
      idempotencyKey?: string | undefined;
    },
    options?: CallOptions,
  ): Promise<DecisionReply>;
}
