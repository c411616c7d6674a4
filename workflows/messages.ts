/**
 * Names and shapes of what can be said to a `topUp` workflow: by the API and the relay (`sessionUrl`,
 * `outcome`, `paymentReported`) and by operators in the Temporal UI (`retry`, `cancel`, `status`).
 */
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { TopUpFailure, TopUpStatus } from '../src/domain/top-up.ts';

export interface TopUpInput {
  /** `tu_…` */
  readonly topUpId: string;
}

export interface TopUpView {
  /** `withdrawn`: the request took it back before the workflow began, and nothing was done. */
  readonly status: TopUpStatus | 'withdrawn';
  readonly sessionUrl: string | null;
  readonly failure: TopUpFailure | null;
}

export type WaitingFor = 'processor' | 'payment' | 'database' | 'operator';

export interface TopUpProgress extends TopUpView {
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

export const status = defineQuery<TopUpProgress>('status');
