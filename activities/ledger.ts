/**
 * The steps that write to Postgres. Each may run twice: its statement is what makes it happen once. Each may be
 * started by anybody who reaches Temporal: it believes nothing but what the row says that the processor showed.
 */
import { ApplicationFailure } from '@temporalio/activity';
import { wireId } from '../src/domain/ids.ts';
import { dollarsOf } from '../src/domain/money.ts';
import type {
  AutoTopUpState,
  TopUpFailure,
  TopUpMethod,
  TopUpStatus,
} from '../src/domain/top-up.ts';
import { creditTopUp } from '../src/store/top-ups/credit-top-up.ts';
import {
  expireTopUp,
  failTopUp,
  getTopUp,
  openTopUp,
  type TopUp,
} from '../src/store/top-ups/top-ups.ts';
import { ask, type AskDeps } from '../src/stripe/ask-processor.ts';
import { storedFailureOf } from '../src/stripe/verdict.ts';
import { rowIdOf } from './row-id.ts';

export interface LedgerDeps extends AskDeps {
  /** Of the processor, for links; null when there is none. */
  readonly dashboardUrl: string | null;
  /** How long after a session opens the workflow asks unprompted whether it was paid, the first time. */
  readonly firstAskMs: number;
  /** How long an automatic top-up leaves a card alone that was declined once. */
  readonly autoTopUpRetryMs: number;
}

/** What a workflow needs to know of a top-up; no personal data, since histories keep it. */
export interface OpenedTopUp {
  readonly method: TopUpMethod;
  readonly status: TopUpStatus;
  readonly consumerId: string;
  readonly amountDollars: number;
  readonly sessionUrl: string | null;
  readonly sessionId: string | null;
  readonly paymentIntentId: string | null;
  /** Where operators find these two; null where the processor has no dashboard. */
  readonly dashboardUrl: string | null;
  readonly failure: TopUpFailure | null;
  readonly firstAskMs: number;
}

export type LedgerActivities = ReturnType<typeof createLedgerActivities>;

export function createLedgerActivities(deps: LedgerDeps) {
  const { database, dashboardUrl, firstAskMs, autoTopUpRetryMs } = deps;
  return {
    /** Null when the request that made the top-up withdrew it: then nothing may be done. */
    async openTopUp(topUpId: string): Promise<OpenedTopUp | null> {
      const topUp = await openTopUp(database, rowIdOf('topUp', topUpId));
      if (!topUp) return null;
      return {
        method: topUp.method,
        status: topUp.status,
        consumerId: wireId('consumer', topUp.consumerId),
        amountDollars: dollarsOf(topUp.amountMicros),
        sessionUrl: topUp.sessionUrl,
        sessionId: topUp.sessionId,
        paymentIntentId: topUp.paymentIntentId,
        dashboardUrl,
        failure:
          topUp.failureCode === null
            ? null
            : { code: topUp.failureCode, message: topUp.failureMessage ?? '' },
        firstAskMs,
      };
    },

    /** Says whether it was credited by this call. */
    async creditTopUp(topUpId: string): Promise<boolean> {
      const { id } = await shownAs('paid', topUpId);
      return (await creditTopUp(database, id)) === 'credited';
    },

    async expireTopUp(topUpId: string): Promise<void> {
      const { id } = await shownAs('expired', topUpId);
      await expireTopUp(database, id);
    },

    /**
     * What became of the consumer's automatic top-ups, if this was one of them. The failure is the one in the row;
     * the caller's is there for the history alone.
     */
    async failTopUp(topUpId: string, _failure?: TopUpFailure): Promise<AutoTopUpState | null> {
      const { id, status, seenFailureCode } = await shownAs('failed', topUpId);
      if (status !== 'pending') return null;
      return failTopUp(database, id, storedFailureOf(seenFailureCode), autoTopUpRetryMs);
    },
  };

  /**
   * Throws unless the processor was seen to show this of the top-up, or it has ended so that nothing is left to do.
   * Where the row says nothing yet (a step of an earlier release had asked), asks.
   */
  async function shownAs(wanted: 'paid' | 'expired' | 'failed', topUpId: string): Promise<TopUp> {
    const id = rowIdOf('topUp', topUpId);
    let topUp = await getTopUp(database, id);
    if (isOver(topUp, wanted) || topUp.seenVerdict === wanted) return topUp;
    await ask(deps, topUp);
    topUp = await getTopUp(database, id);
    if (topUp.seenVerdict === wanted) return topUp;
    throw ApplicationFailure.create({
      type: 'not_shown',
      message: `The processor does not show that ${topUpId} is ${wanted}: nothing was changed.`,
    });
  }
}

/** What is credited stays so; what has expired or failed changes only by being paid. */
function isOver({ status }: TopUp, wanted: 'paid' | 'expired' | 'failed'): boolean {
  if (status === 'pending') return false;
  return wanted !== 'paid' || (status !== 'expired' && status !== 'failed');
}
