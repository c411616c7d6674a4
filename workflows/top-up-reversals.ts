/**
 * Runs of `topUp` that began before the workflow `reversals` existed read refunds and disputes themselves, once the
 * top-up was credited. This lets them end. Nothing starts such a run any more: delete this file with the release after
 * the next.
 */
import { setHandler } from '@temporalio/workflow';
import { isCredited } from '../src/domain/top-up.ts';
import type { Verdict } from '../src/domain/verdict.ts';
import * as messages from './messages.ts';
import type { TopUpInput, TopUpView } from './messages.ts';
import { atProcessor } from './processor-steps.ts';
import type { Steps } from './steps.ts';

interface Run {
  readonly topUpId: string;
  readonly steps: Steps;
  status: TopUpView['status'];
  /** Refunds and disputes must be read once it is credited. */
  reversalReported: boolean;
}

const STEP = 'syncReversals';

export function listenForReversals(run: Run): void {
  setHandler(
    messages.reversalReported,
    () => {
      run.reversalReported = true;
      run.steps.woken = true; // a reversal implies a payment
    },
    { description: 'Sent by earlier releases. The workflow `reversals` has this signal now.' },
  );
}

export function hasReversals({ reversalReported, status }: Run): boolean {
  return reversalReported && status !== 'withdrawn' && isCredited(status);
}

export async function readReversals(run: Run): Promise<void> {
  const reading = atProcessor('Sync refunds and disputes');
  const { status } = await run.steps.take(STEP, () => {
    run.reversalReported = false; // the read below covers everything reported so far
    return reading.settleTopUp(run.topUpId);
  });
  run.status = status;
}

/** What a run passes to the next one. */
export function inputOf(run: Run, step: string): TopUpInput {
  const { topUpId, reversalReported } = run;
  return reversalReported || step === STEP ? { topUpId, reversalReported: true } : { topUpId };
}

/**
 * The verdict of an earlier release's step. The steps of this one note reversals in the row, and its credit
 * passes them on.
 */
export function isReversed(verdict: Verdict & { readonly isReversed?: boolean }): boolean {
  return verdict.isReversed === true;
}
