/** Refunds and disputes of the ledger held against those of the processor, one by one. */
import type Stripe from 'stripe';
import { CLAIMS } from '../domain/reversal.ts';
import { listProcessorClaims, type Finding } from '../store/audit/ledger-checks.ts';
import type { Database } from '../store/database.ts';
import type { ReportedReversal } from '../store/top-ups/reversals.ts';
import { reportOfDispute, reportOfRefund } from './reversals.ts';

/** `paymentIntents`: those that paid our top-ups; others are none of our business. */
export async function auditReversals(
  database: Database,
  stripe: Stripe,
  paymentIntents: ReadonlySet<string>,
): Promise<Finding[]> {
  // Looked at on both sides of the processor's state: what changed on the way there agrees with one of them.
  const before = await listProcessorClaims(database);
  const shown = await listShown(stripe, paymentIntents);
  const after = await listProcessorClaims(database);
  const ids = new Set([...before.keys(), ...shown.keys()]);
  return [...ids]
    .filter((id) => before.get(id) !== shown.get(id) && after.get(id) !== shown.get(id))
    .map((id) => ({
      check: 'refunds and disputes are as the processor shows them',
      subject: id,
      detail: `ledger: ${after.get(id) ?? 'nothing'}, processor: ${shown.get(id) ?? 'nothing'}`,
    }));
}

/** What each refund and dispute claims, such as `lost 5000000`, by its id. */
async function listShown(
  stripe: Stripe,
  paymentIntents: ReadonlySet<string>,
): Promise<ReadonlyMap<string, string>> {
  const shown = new Map<string, string>();
  const show = (intent: unknown, { processorId, status, amountMicros }: ReportedReversal) => {
    if (typeof intent !== 'string' || !paymentIntents.has(intent)) return;
    if (CLAIMS[status] !== 'nothing') shown.set(processorId, `${status} ${amountMicros}`);
  };
  for await (const refund of stripe.refunds.list({ limit: 100 })) {
    show(refund.payment_intent, reportOfRefund(refund));
  }
  for await (const dispute of stripe.disputes.list({ limit: 100 })) {
    show(dispute.payment_intent, reportOfDispute(dispute));
  }
  return shown;
}
