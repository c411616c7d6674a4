/**
 * The steps of a top-up that write to Postgres. Each may run twice: its statement takes effect once. Anybody who can
 * reach Temporal can start one, so each trusts only the processor's evidence in the row.
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
import { findAutoTopUpState } from '../src/store/top-ups/auto-top-ups.ts';
import { creditTopUp } from '../src/store/top-ups/credit-top-up.ts';
import { claimTopUp } from '../src/store/top-ups/claim-top-up.ts';
import { expireTopUp, failTopUp } from '../src/store/top-ups/end-unpaid-top-up.ts';
import { getTopUp, type TopUp } from '../src/store/top-ups/top-ups.ts';
import { ask, type AskDeps } from '../src/stripe/ask-processor.ts';
import { storedFailureOf } from '../src/stripe/verdict.ts';
import { rowIdOf } from './row-id.ts';

export interface TopUpDeps extends AskDeps {
  /** URL of the processor's dashboard, for links; null if it has none. */
  readonly dashboardUrl: string | null;
  /** How long after a session opens the workflow first asks whether it was paid, without a report. */
  readonly firstAskMs: number;
  /** How long automatic top-ups wait after the first decline before they charge the card again. */
  readonly autoTopUpRetryMs: number;
}

/** The state of a top-up for its workflow. No personal data, since histories keep it. */
export interface TopUpState {
  readonly method: TopUpMethod;
  readonly status: TopUpStatus;
  readonly consumerId: string;
  readonly amountDollars: number;
  readonly sessionUrl: string | null;
  readonly sessionId: string | null;
  readonly paymentIntentId: string | null;
  /** Where operators find the session and the payment intent; null if the processor has no dashboard. */
  readonly dashboardUrl: string | null;
  readonly failure: TopUpFailure | null;
  readonly firstAskMs: number;
}

export type TopUpActivities = ReturnType<typeof createTopUpActivities>;

export function createTopUpActivities(deps: TopUpDeps) {
  const { database, dashboardUrl, firstAskMs, autoTopUpRetryMs } = deps;
  return {
    /** Claims the top-up for its workflow. Null if the request withdrew it: then nothing may be done. */
    async openTopUp(topUpId: string): Promise<TopUpState | null> {
      const topUp = await claimTopUp(database, rowIdOf('topUp', topUpId));
      return topUp && stateOf(topUp);
    },

    /** The top-up as it is. */
    async readTopUp(topUpId: string): Promise<TopUpState> {
      return stateOf(await getTopUp(database, rowIdOf('topUp', topUpId)));
    },

    /** Whether this call credited it. */
    async creditTopUp(topUpId: string): Promise<boolean> {
      const { id } = await shownAs('paid', topUpId);
      return (await creditTopUp(database, id)) === 'credited';
    },

    async expireTopUp(topUpId: string): Promise<void> {
      const { id } = await shownAs('expired', topUpId);
      await expireTopUp(database, id);
    },

    /**
     * Records the failure from the row; the caller's is only for the history. Returns the state of the
     * consumer's automatic top-ups if this was one of them, even if an earlier attempt of this step has
     * recorded the failure.
     */
    async failTopUp(topUpId: string, _failure?: TopUpFailure): Promise<AutoTopUpState | null> {
      const topUp = await shownAs('failed', topUpId);
      if (topUp.status !== 'pending')
        return topUp.automatic ? findAutoTopUpState(database, topUp) : null;
      const { failure, refusedCardId } = storedFailureOf(topUp);
      return failTopUp(database, topUp.id, {
        failure,
        retryMs: autoTopUpRetryMs,
        isFinal: refusedCardId !== undefined,
      });
    },
  };

  function stateOf(topUp: TopUp): TopUpState {
    const { failureCode, failureMessage } = topUp;
    return {
      method: topUp.method,
      status: topUp.status,
      consumerId: wireId('consumer', topUp.consumerId),
      amountDollars: dollarsOf(topUp.amountMicros),
      sessionUrl: topUp.sessionUrl,
      sessionId: topUp.sessionId,
      paymentIntentId: topUp.paymentIntentId,
      dashboardUrl,
      failure: failureCode === null ? null : { code: failureCode, message: failureMessage ?? '' },
      firstAskMs,
    };
  }

  /**
   * Throws unless the row has this verdict as evidence, or the top-up has ended and nothing is left to do. Asks the
   * processor if the row has no evidence yet, because a step of an earlier release had asked.
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
      message: `The processor does not show ${topUpId} as ${wanted}. Nothing was changed.`,
    });
  }
}

/** A credited top-up stays credited; an expired or failed one changes only if it was paid. */
function isOver({ status }: TopUp, wanted: 'paid' | 'expired' | 'failed'): boolean {
  if (status === 'pending') return false;
  return wanted !== 'paid' || (status !== 'expired' && status !== 'failed');
}
