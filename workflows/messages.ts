/**
 * The messages that our workflows accept, and their types. The API and the relay send `topUp` `sessionUrl`, `outcome`
 * and `paymentReported`; operators send it `retry`, `cancel` and `status` in the Temporal UI. The messages of the other
 * workflows are below.
 */
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { AnswerKind, ApprovalStatus, Decision } from '../src/domain/approval.ts';
import type { GrantStatus } from '../src/domain/grant.ts';
import type { AgentTask, InvocationView } from '../src/domain/invocation.ts';
import type { TopUpFailure, TopUpStatus } from '../src/domain/top-up.ts';
import type { WebhookEndpointStatus } from '../src/domain/webhook-endpoint.ts';

export interface TopUpInput {
  /** `tu_…` */
  readonly topUpId: string;
  /** Only in runs of earlier releases: a refund or dispute was reported to the previous run, which had not read it. */
  readonly reversalReported?: boolean;
}

export interface TopUpView {
  /** `withdrawn`: the request withdrew the top-up before the workflow claimed it, and nothing was done. */
  readonly status: TopUpStatus | 'withdrawn';
  readonly sessionUrl: string | null;
  readonly failure: TopUpFailure | null;
}

/** Who has to act next. After a failure, the party that failed; `worker` if its process ended during the step. */
export type WaitingFor =
  | 'processor'
  | 'payment'
  | 'database'
  | 'operator'
  | 'owner'
  | 'agent'
  | 'worker';

export interface TopUpProgress extends TopUpView {
  /** The processor's ids, once known: `cs_…`, `pi_…`. */
  readonly sessionId: string | null;
  readonly paymentIntentId: string | null;
  readonly waitingFor: WaitingFor | null;
  readonly stuck: Stuck | null;
}

/** A step has used up its attempts. It is retried at growing intervals, or by `retry`. */
export interface Stuck {
  readonly step: string;
  readonly since: string;
  readonly message: string;
}

/** Updates rather than signals: the caller waits for the answer, in the round trip that starts the workflow. */
export const sessionUrl = defineUpdate<TopUpView>('sessionUrl');
export const outcome = defineUpdate<TopUpView>('outcome');
export const retry = defineUpdate<TopUpProgress>('retry');
export const cancel = defineUpdate<TopUpProgress>('cancel');

/** A nudge: an event about this payment arrived. It has no payload, because the workflow would not trust one. */
export const paymentReported = defineSignal('paymentReported');

export const status = defineQuery<TopUpProgress>('status');

export interface ReversalsInput {
  /** `tu_…` */
  readonly topUpId: string;
}

export interface ReversalsView {
  /** The top-up's; null until it has been read. */
  readonly status: TopUpStatus | null;
  /** The amounts that its refunds and disputes hold, and that the consumer owes for them. */
  readonly heldDollars: number;
  readonly debtDollars: number;
  /** The kinds of those that are open. */
  readonly open?: readonly ('dispute' | 'warning')[];
  /** The newest refund that failed. */
  readonly failedRefund?: { readonly dollars: number; readonly message: string } | null;
  /** The processor's ids of refunds that should have a credit note, and have none. */
  readonly unnoted?: readonly string[];
  /** Why the invoice could not be made; null if it was, or none is due. */
  readonly invoiceRefusal?: string | null;
}

export interface ReversalsProgress extends ReversalsView {
  readonly waitingFor: WaitingFor | null;
  readonly stuck: Stuck | null;
}

/** A nudge, as above: the processor reported a refund or dispute, or a refund was requested. */
export const reversalReported = defineSignal('reversalReported');
export const reversalsRetry = defineUpdate<ReversalsProgress>('retry');
export const reversalsStatus = defineQuery<ReversalsProgress>('status');

export interface GrantInput {
  /** `gnt_…` */
  readonly grantId: string;
}

export interface GrantView {
  readonly status: GrantStatus;
  readonly uses: number;
}

/** Nudges, as above: the grant's row has the facts. */
export const grantUsed = defineSignal('used');
export const grantRevoked = defineSignal('revoked');
export const grantStatus = defineQuery<GrantView>('status');

export interface InvocationInput {
  /** `inv_…` */
  readonly invocationId: string;
  /** What the agent began in an earlier run of this workflow. */
  readonly task?: AgentTask;
}

export interface InvocationProgress extends InvocationView {
  readonly waitingFor: WaitingFor | null;
  readonly stuck: Stuck | null;
}

export const invocationOutcome = defineUpdate<InvocationView>('outcome');
export const invocationRetry = defineUpdate<InvocationProgress>('retry');
export const invocationStatus = defineQuery<InvocationProgress>('status');

export interface ApprovalInput {
  /** `apr_…` */
  readonly approvalId: string;
}

export interface ApprovalView {
  readonly status: ApprovalStatus;
  readonly decision: Decision | null;
}

export interface ApprovalDecision {
  readonly decision: Exclude<AnswerKind, 'top_up'>;
  /** With `raise`: the new limit in dollars. */
  readonly limit?: number | string;
}

export const decide = defineUpdate<ApprovalView, [ApprovalDecision]>('decide');
/** A nudge, as above: the approval's row has the answer. */
export const approvalDecided = defineSignal('decided');
export const approvalStatus = defineQuery<ApprovalView>('status');

export interface WebhookEndpointInput {
  /** `we_…` */
  readonly endpointId: string;
}

export interface WebhookEndpointView {
  /** Null: deleted. */
  readonly status: WebhookEndpointStatus | null;
  readonly failingSince: string | null;
}

export const webhookEndpointChanged = defineSignal('changed');
export const webhookEndpointStatus = defineQuery<WebhookEndpointView>('status');
