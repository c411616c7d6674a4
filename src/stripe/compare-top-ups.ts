/**
 * The ledger held against the processor: every payment that succeeded there for a top-up of ours is
 * credited exactly once and in full, nothing is credited that was not paid, and what was paid back is known.
 */
import type Stripe from 'stripe';
import { uuidOf } from '../domain/ids.ts';
import { microsOfCents } from '../domain/money.ts';
import {
  findCredited,
  listCreditedThroughProcessor,
  type Finding,
} from '../store/audit/ledger-checks.ts';
import type { Database } from '../store/database.ts';
import { auditReversals } from './compare-reversals.ts';

interface Paid {
  readonly micros: number;
  readonly payments: number;
}

export async function auditProcessor(database: Database, stripe: Stripe): Promise<Finding[]> {
  // The ledger first: what is paid between the two looks is not yet expected to be credited, and what is
  // credited by now was paid before.
  const credited = await listCreditedThroughProcessor(database);
  const { paid, intents } = await listPaid(stripe);
  const booked = await findCredited(database, [...paid.keys()]);
  return [
    ...credited
      .filter(({ id, amountMicros }) => paid.get(id)?.micros !== amountMicros)
      .map(({ id, amountMicros }) => ({
        check: 'what is credited was paid at the processor',
        subject: `top-up ${id}`,
        detail: `credited ${amountMicros}, paid ${paid.get(id)?.micros ?? 0}`,
      })),
    ...[...paid]
      .filter(([id, { micros, payments }]) => payments !== 1 || booked.get(id) !== micros)
      .map(([id, { micros, payments }]) => ({
        check: 'what was paid at the processor is credited once',
        subject: `top-up ${id}`,
        detail: `paid ${micros} in ${payments} payments, credited ${booked.get(id) ?? 0}`,
      })),
    ...(await auditReversals(database, stripe, intents)),
  ];
}

async function listPaid(stripe: Stripe) {
  const paid = new Map<string, Paid>();
  const intents = new Set<string>();
  for await (const intent of stripe.paymentIntents.list({ limit: 100 })) {
    const id = uuidOf('topUp', intent.metadata['top_up_id'] ?? '');
    if (id === undefined || intent.status !== 'succeeded') continue;
    intents.add(intent.id);
    const before = paid.get(id) ?? { micros: 0, payments: 0 };
    paid.set(id, {
      micros: before.micros + microsOfCents(intent.amount_received),
      payments: before.payments + 1,
    });
  }
  return { paid, intents };
}
