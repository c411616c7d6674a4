/**
 * What becomes of a top-up after it was credited: its refunds and disputes. The step may run twice, and beside
 * itself: what is recorded is what was read last, and a refund has one idempotency key.
 */
import type { Stripe } from 'stripe';
import { dollarsOf } from '../src/domain/money.ts';
import type { TopUpStatus } from '../src/domain/top-up.ts';
import { settleReversals } from '../src/stripe/settle-reversals.ts';
import type { Database } from '../src/store/database.ts';
import { getClaims } from '../src/store/top-ups/reversals.ts';
import { getTopUp } from '../src/store/top-ups/top-ups.ts';
import { rowIdOf } from './row-id.ts';

export interface ReversalDeps {
  readonly database: Database;
  readonly stripe: Stripe;
}

export interface SettledTopUp {
  readonly status: TopUpStatus;
  readonly heldDollars: number;
  readonly debtDollars: number;
}

export type ReversalActivities = ReturnType<typeof createReversalActivities>;

export function createReversalActivities(deps: ReversalDeps) {
  return {
    /**
     * Records what the processor shows of refunds and disputes, and has it make the refunds that are asked
     * for. Reads first, so that what an earlier attempt did is known, and a refund that cannot be made for
     * now keeps nothing else from being recorded.
     */
    async settleTopUp(topUpId: string): Promise<SettledTopUp> {
      const id = rowIdOf('topUp', topUpId);
      const { paymentIntentId } = await getTopUp(deps.database, id);
      if (paymentIntentId !== null) {
        await settleReversals(deps, id, paymentIntentId);
      }
      const { status } = await getTopUp(deps.database, id);
      const { heldMicros, debtMicros } = await getClaims(deps.database, id);
      return { status, heldDollars: dollarsOf(heldMicros), debtDollars: dollarsOf(debtMicros) };
    },
  };
}
