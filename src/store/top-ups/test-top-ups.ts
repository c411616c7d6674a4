/**
 * Top-ups of test accounts: play money, credited at once by the same books as real money. No workflow, card
 * or processor takes part, and constraints keep these rows apart from those of live accounts.
 */
import type { Micros } from '../../domain/money.ts';
import type { TopUpFailure } from '../../domain/top-up.ts';
import { lockConsumer } from '../balance/consumers.ts';
import { hasRoomFor } from '../balance/lots.ts';
import type { Database } from '../database.ts';
import { bookCredits } from './credit-top-up.ts';
import { insertTopUp } from './insert-top-up.ts';
import { findByKey, type NewTopUp, type TopUp } from './top-ups.ts';

export interface NewTestTopUp extends Omit<NewTopUp, 'method'> {
  readonly amountMicros: Micros;
  /** On demand: the top-up fails with this, and credits nothing. */
  readonly failure: TopUpFailure | undefined;
}

export type TestTopUpResult =
  | { readonly kind: 'made' | 'known'; readonly topUp: TopUp }
  | { readonly kind: 'key_reused' }
  /** The sum of all credits would exceed the largest safe integer. */
  | { readonly kind: 'too_much_credited' };

/** Completed or failed when it returns. A repeated idempotency key returns the first one. */
export async function makeTestTopUp(
  database: Database,
  request: NewTestTopUp,
): Promise<TestTopUpResult> {
  return database.transaction(async (tx) => {
    const { ledger, consumerId, amountMicros, failure } = request;
    // Requests with the same key take turns.
    await lockConsumer(tx, request);
    const known = await findByKey(tx, request);
    if (known) {
      return known.amountMicros === amountMicros
        ? { kind: 'known', topUp: known }
        : { kind: 'key_reused' };
    }
    if (!(await hasRoomFor(tx, request, amountMicros))) return { kind: 'too_much_credited' };
    const status = failure ? 'failed' : 'completed';
    const topUp = await insertTopUp(tx, { ...request, method: 'test', status, failure });
    if (!failure) await bookCredits(tx, [{ ledger, consumerId, topUpId: topUp.id, amountMicros }]);
    return { kind: 'made', topUp };
  });
}
