/** The steps that write to Postgres. Each may run twice: its statement is what makes it happen once. */
import { wireId } from '../src/domain/ids.ts';
import { dollarsOf } from '../src/domain/money.ts';
import type {
  AutoTopUpState,
  TopUpFailure,
  TopUpMethod,
  TopUpStatus,
} from '../src/domain/top-up.ts';
import { creditTopUp } from '../src/store/top-ups/credit-top-up.ts';
import type { Database } from '../src/store/database.ts';
import { expireTopUp, failTopUp, openTopUp } from '../src/store/top-ups/top-ups.ts';
import { rowIdOf } from './row-id.ts';

export interface LedgerDeps {
  readonly database: Database;
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
  readonly failure: TopUpFailure | null;
  readonly firstAskMs: number;
}

export type LedgerActivities = ReturnType<typeof createLedgerActivities>;

export function createLedgerActivities({ database, firstAskMs, autoTopUpRetryMs }: LedgerDeps) {
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
        failure:
          topUp.failureCode === null
            ? null
            : { code: topUp.failureCode, message: topUp.failureMessage ?? '' },
        firstAskMs,
      };
    },

    /** For a payment that the processor has confirmed. Says whether it was credited by this call. */
    async creditTopUp(topUpId: string): Promise<boolean> {
      return creditTopUp(database, rowIdOf('topUp', topUpId));
    },

    async expireTopUp(topUpId: string): Promise<void> {
      await expireTopUp(database, rowIdOf('topUp', topUpId));
    },

    /** What became of the consumer's automatic top-ups, if this was one of them. */
    async failTopUp(topUpId: string, failure: TopUpFailure): Promise<AutoTopUpState | null> {
      return failTopUp(database, rowIdOf('topUp', topUpId), failure, autoTopUpRetryMs);
    },
  };
}
