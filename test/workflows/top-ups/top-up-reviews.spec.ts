/** Reviews of Radar: they hold nothing, and what they end with takes the money back. */
import assert from 'node:assert/strict';
import { Type } from 'typebox';
import { row, sql } from '../../../src/store/database.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { proveBooks } from '../../support/books.ts';
import { endAll } from '../../support/end-all.ts';
import { payerOf } from '../../support/payer.ts';
import { control } from '../../support/payments.ts';
import { until } from '../../support/stack.ts';
import {
  openTopUpHarness,
  QUICK_RETRIES,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

const typeRow = row(Type.Object({ type: Type.String() }));
const SPENDABLE = { balance: 10_000_000, held: 0, debt: 0 };
const NOTHING = { balance: 0, held: 0, debt: 0 };

describe('a payment under review', () => {
  let harness: TopUpHarness;

  before(async () => {
    harness = await openTopUpHarness({ FIRST_ASK_MS: '3600000', ...QUICK_RETRIES });
    await harness.startWorker();
  });
  after(() =>
    endAll(
      () => proveBooks(harness.env),
      () => harness.close(),
    ),
  );

  it('is spendable, also once it is approved, and its events wake nobody', async () => {
    const { payer, topUp, review } = await reviewed();
    await until(async () => (await eventsOf(review)).length === 1);
    assert.deepEqual(await payer.money(), SPENDABLE);
    await control(harness.simulator, `reviews/${review}/approve`, {});
    await until(async () => (await eventsOf(review)).length === 2);
    assert.deepEqual(await eventsOf(review), ['review.closed', 'review.opened']);
    assert.equal(await harness.waitingNotices(), 0);
    assert.ok(await harness.hasEnded(topUp));
    assert.deepEqual(await payer.money(), SPENDABLE);
  });

  it('is taken back when the review ends with a refund for fraud', async () => {
    const { payer, topUp, review, intent } = await reviewed();
    await harness.stripe.refunds.create({ payment_intent: intent, reason: 'fraudulent' });
    await until(async () => (await eventsOf(review)).includes('review.closed'));
    await harness.statusBecomes(topUp, 'refunded');
    assert.deepEqual(await payer.money(), NOTHING);
  });

  it('is held when the cardholder disputes it first', async () => {
    const { payer, topUp, review, intent } = await reviewed();
    await harness.control('disputes', { payment_intent: intent });
    await until(async () => (await eventsOf(review)).includes('review.closed'));
    await harness.statusBecomes(topUp, 'disputed');
    assert.deepEqual(await payer.money(), { ...NOTHING, held: 10_000_000 });
  });

  /** Credited with $10.00, and then put under review by a rule. */
  async function reviewed() {
    const consumer = await harness.newConsumer();
    const checkout = await harness.checkout(consumer, 10);
    await harness.pay(checkout.sessionUrl);
    await harness.statusBecomes(checkout, 'completed');
    await until(() => harness.isQuiet(checkout));
    const topUp: TopUp = await harness.topUp(checkout.id);
    const intent = topUp.paymentIntentId ?? '';
    const opened = await control(harness.simulator, 'reviews', { payment_intent: intent });
    const { id: review } = opened as { id: string };
    return { payer: payerOf(harness.database, consumer), topUp, intent, review };
  }

  async function eventsOf(review: string): Promise<readonly string[]> {
    return harness.database.anyFirst(sql.type(typeRow)`
      select type from farebox.processor_events where object_id = ${review} order by type
    `);
  }
});
