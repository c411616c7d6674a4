/**
 * Names and shapes of what can be said to our workflows. To `topUp` by the API and the relay (`sessionUrl`,
 * `outcome`, `paymentReported`, `reversalReported`) and by operators in the Temporal UI (`retry`, `cancel`,
 * `status`); those of `grant` and `invocation` are below.
 */
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { GrantStatus } from '../src/domain/grant.ts';
import type { InvocationView } from '../src/domain/invocation.ts';
import type { TopUpFailure, TopUpStatus } from '../src/domain/top-up.ts';

export interface TopUpInput {
  /** `tu_…` */
  readonly topUpId: string;
  /** The run before this one was told of a refund or dispute, and had not settled it. */
  readonly reversalReported?: boolean;
}

export interface TopUpView {
  /** `withdrawn`: the request took it back before the workflow began, and nothing was done. */
  readonly status: TopUpStatus | 'withdrawn';
  readonly sessionUrl: string | null;
  readonly failure: TopUpFailure | null;
}

/** Who has to act next. After a failure: the party that failed, `worker` when its process ended in the middle. */
export type WaitingFor = 'processor' | 'payment' | 'database' | 'operator' | 'agent' | 'worker';

export interface TopUpProgress extends TopUpView {
  /** Of its refunds and disputes: what they hold, and what they are owed. */
  readonly heldDollars: number;
  readonly debtDollars: number;
  /** The processor's own ids, as far as they are known: `cs_…`, `pi_…`. */
  readonly sessionId: string | null;
  readonly paymentIntentId: string | null;
  readonly waitingFor: WaitingFor | null;
  readonly stuck: Stuck | null;
}

/** A step has used up its attempts. It is tried again at growing intervals, or by `retry`. */
export interface Stuck {
  readonly step: string;
  readonly since: string;
  readonly message: string;
}

/** Updates rather than signals: the caller waits for the answer, in the round trip that starts it. */
export const sessionUrl = defineUpdate<TopUpView>('sessionUrl');
export const outcome = defineUpdate<TopUpView>('outcome');
export const retry = defineUpdate<TopUpProgress>('retry');
export const cancel = defineUpdate<TopUpProgress>('cancel');

/** A nudge: something was reported about this payment. Carries nothing, since nothing in it is believed. */
export const paymentReported = defineSignal('paymentReported');
/** A nudge too: about a refund or dispute, by the processor or because one was asked for. */
export const reversalReported = defineSignal('reversalReported');

export const status = defineQuery<TopUpProgress>('status');

export interface GrantInput {
  /** `gnt_…` */
  readonly grantId: string;
}

export interface GrantView {
  readonly status: GrantStatus;
  readonly uses: number;
}

/** Nudges, as above: the grant's row says what is so. */
export const grantUsed = defineSignal('used');
export const grantRevoked = defineSignal('revoked');
export const grantStatus = defineQuery<GrantView>('status');

export interface InvocationInput {
  /** `inv_…` */
  readonly invocationId: string;
}

export interface InvocationProgress extends InvocationView {
  readonly waitingFor: WaitingFor | null;
  readonly stuck: Stuck | null;
}

export const invocationOutcome = defineUpdate<InvocationView>('outcome');
export const invocationRetry = defineUpdate<InvocationProgress>('retry');
export const invocationStatus = defineQuery<InvocationProgress>('status');
