/** Brings the refunds and disputes of a credited top-up to what Stripe shows of them, and makes those that are asked for. */
import type { Stripe } from 'stripe';
import type { Database } from '../store/database.ts';
import { failRefund, listRequestedRefunds } from '../store/top-ups/request-refund.ts';
import {
  getReversalsVersion,
  recordReversals,
  type ReportedReversal,
} from '../store/top-ups/reversals.ts';
import { makeRefund, readReversals } from './reversals.ts';

/**
 * Reads first, so that what an earlier attempt did is known, and a refund that cannot be made for now keeps nothing else
 * from being recorded.
 */
export async function settleReversals(
  { database, stripe }: { readonly database: Database; readonly stripe: Stripe },
  topUpId: string,
  paymentIntentId: string,
): Promise<void> {
  await record(database, topUpId, () => readReversals(stripe, paymentIntentId));
  for (const refund of await listRequestedRefunds(database, topUpId)) {
    await record(database, topUpId, async () => {
      const made = await makeRefund(stripe, paymentIntentId, refund);
      if (made.kind === 'made') return [made.reported];
      await failRefund(database, topUpId, refund.id, made.message);
      return [];
    });
  }
}

async function record(
  database: Database,
  topUpId: string,
  read: () => Promise<readonly ReportedReversal[]>,
): Promise<void> {
  const version = await getReversalsVersion(database, topUpId);
  if (await recordReversals(database, topUpId, version, await read())) return;
  throw new Error('the top-up changed while the processor was read; the next attempt reads again');
}
