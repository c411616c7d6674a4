/**
 * The step for the refunds and disputes of a credited top-up. It may run twice, even concurrently: only the latest read
 * is recorded, and a refund has one idempotency key.
 */
import type { Stripe } from 'stripe';
import { dollarsOf } from '../src/domain/money.ts';
import type { TopUpStatus } from '../src/domain/top-up.ts';
import { syncReversals } from '../src/stripe/sync-reversals.ts';
import type { Database } from '../src/store/database.ts';
import { listWithoutCreditNote } from '../src/store/top-ups/invoices.ts';
import { getClaims } from '../src/store/top-ups/reversals.ts';
import { getTopUp } from '../src/store/top-ups/top-ups.ts';
import { rowIdOf } from './row-id.ts';

export interface ReversalDeps {
  readonly database: Database;
  readonly stripe: Stripe;
  readonly warn: (message: string) => void;
}

export interface SyncedReversals {
  readonly status: TopUpStatus;
  readonly heldDollars: number;
  readonly debtDollars: number;
  readonly open: readonly ('dispute' | 'warning')[];
  readonly failedRefund: { readonly dollars: number; readonly message: string } | null;
  readonly unnoted: readonly string[];
  /** Why the invoice could not be made; null if it was, or none is due. */
  readonly invoiceRefusal: string | null;
}

export type ReversalActivities = ReturnType<typeof createReversalActivities>;

export function createReversalActivities(deps: ReversalDeps) {
  return {
    /**
     * Records the processor's refunds and disputes, and makes the requested refunds. Reads first, to learn what an
     * earlier attempt did, and so that a refund that cannot be made now does not keep the rest from being recorded.
     */
    async settleTopUp(topUpId: string): Promise<SyncedReversals> {
      const id = rowIdOf('topUp', topUpId);
      const { paymentIntentId } = await getTopUp(deps.database, id);
      const invoiceRefusal =
        paymentIntentId === null ? null : await syncReversals(deps, id, paymentIntentId);
      const { status } = await getTopUp(deps.database, id);
      const { heldMicros, debtMicros, open, failedRefund } = await getClaims(deps.database, id);
      const unnoted = await listWithoutCreditNote(deps.database, id);
      return {
        status,
        heldDollars: dollarsOf(heldMicros),
        debtDollars: dollarsOf(debtMicros),
        open,
        failedRefund: failedRefund && {
          dollars: dollarsOf(failedRefund.amountMicros),
          message: failedRefund.message,
        },
        unnoted: unnoted.map(({ processorId }) => processorId),
        invoiceRefusal,
      };
    },
  };
}
