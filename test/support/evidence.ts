/** The processor's view of a top-up, as if a step had just read it there: for tests of the store alone. */
import assert from 'node:assert/strict';
import { asMicros } from '../../src/domain/money.ts';
import { creditTopUp, type CreditResult } from '../../src/store/top-ups/credit-top-up.ts';
import type { Database } from '../../src/store/database.ts';
import { recordPaid, recordUnpaid } from '../../src/store/top-ups/payment-evidence.ts';
import { expireTopUp, failTopUp } from '../../src/store/top-ups/end-unpaid-top-up.ts';
import { getTopUp } from '../../src/store/top-ups/top-ups.ts';

/** A payment of the whole amount; a top-up without a payment intent gets one. */
export async function showPaid(
  database: Database,
  id: string,
  taxMicros = asMicros(0),
): Promise<void> {
  const { amountMicros, paymentIntentId } = await getTopUp(database, id);
  const seen = {
    paymentIntentId: paymentIntentId ?? `pi_${id}`,
    paidMicros: asMicros(amountMicros + taxMicros),
    taxMicros,
    hasReversals: false,
  } as const;
  assert.equal(await recordPaid(database, id, seen), true);
}

export async function credit(
  database: Database,
  id: string,
  taxMicros = asMicros(0),
): Promise<CreditResult> {
  await showPaid(database, id, taxMicros);
  return creditTopUp(database, id);
}

export async function fail(
  database: Database,
  id: string,
  failure: { readonly code: string; readonly message: string },
  retryMs: number,
) {
  await recordUnpaid(database, await getTopUp(database, id), {
    kind: 'failed',
    code: failure.code,
  });
  return failTopUp(database, id, { failure, retryMs });
}

export async function expire(database: Database, id: string): Promise<void> {
  await recordUnpaid(database, await getTopUp(database, id), { kind: 'expired' });
  await expireTopUp(database, id);
}
