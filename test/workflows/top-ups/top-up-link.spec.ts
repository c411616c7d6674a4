/** A checkout that was requested through a top-up link: it is paid like any other, and shows nothing of the account. */
import assert from 'node:assert/strict';
import { asMicros } from '../../../src/domain/money.ts';
import { findProcessorCustomer } from '../../../src/store/top-ups/processor-customers.ts';
import { requestRefund } from '../../../src/store/top-ups/request-refund.ts';
import { admitTopUp } from '../../../src/store/top-ups/admit-top-up.ts';
import { listCards } from '../../../src/stripe/cards.ts';
import { proveBooks } from '../../support/books.ts';
import { endAll } from '../../support/end-all.ts';
import {
  openTopUpHarness,
  QUICK_RETRIES,
  type Consumer,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

const CARD = '4242424242424242';

async function pageOf(url: string | null): Promise<string> {
  return (await fetch(url ?? '')).text();
}

describe('a checkout of a top-up link', () => {
  let harness: TopUpHarness;
  let consumer: Consumer;

  before(async () => {
    harness = await openTopUpHarness({ SAVE_TEST_CARD: 'false', ...QUICK_RETRIES });
    await harness.startWorker();
  });
  beforeEach(async () => {
    consumer = await harness.newConsumer();
  });
  after(() =>
    endAll(
      () => proveBooks(harness.env),
      () => harness.close(),
    ),
  );

  async function cardsOfOwner() {
    const customer = await findProcessorCustomer(harness.database, consumer.accountId);
    return listCards(harness.stripe, customer ?? '');
  }

  it('shows, uses and saves no card of the account', async () => {
    const own = await harness.checkout(consumer, 5);
    await harness.pay(own.sessionUrl, CARD, { save: true });
    await harness.statusBecomes(own, 'completed');
    const [card, ...more] = await cardsOfOwner();
    assert.ok(card && more.length === 0);
    const next = await harness.checkout(consumer, 5);
    assert.match(await pageOf(next.sessionUrl), /visa ending in 4242/);

    const topUp = await harness.checkout(consumer, 7, { byLink: true });
    const page = await pageOf(topUp.sessionUrl);
    assert.doesNotMatch(page, /ending in|Save this card/);
    const body = new URLSearchParams({ saved: card.id });
    const used = await fetch(topUp.sessionUrl ?? '', { method: 'POST', body });
    assert.equal(used.status, 402);
    await harness.pay(topUp.sessionUrl, '5555555555554444', { save: true });
    await harness.statusBecomes(topUp, 'completed');
    const [payment] = await harness.paymentsOf(topUp);
    assert.equal(payment?.customer, null);
    const ids = (await cardsOfOwner()).map(({ id }) => id);
    assert.deepEqual(ids, [card.id]);
    assert.equal((await harness.books(consumer)).credited, 12_000_000);
  });

  it('makes no customer for an account that has none', async () => {
    const topUp = await harness.checkout(consumer, 7, { byLink: true });
    await harness.pay(topUp.sessionUrl);
    await harness.statusBecomes(topUp, 'completed');
    assert.equal(await findProcessorCustomer(harness.database, consumer.accountId), null);
  });

  it('is refunded like any other', async () => {
    const topUp = await harness.checkout(consumer, 7, { byLink: true });
    await harness.pay(topUp.sessionUrl);
    await harness.statusBecomes(topUp, 'completed');
    await requestRefund(harness.database, topUp.id, undefined);
    await harness.statusBecomes(topUp, 'refunded');
  });

  it('is never returned for a key of the consumer, nor the other way round', async () => {
    const order = { ...consumer, method: 'checkout', amountMicros: asMicros(5_000_000) } as const;
    for (const byLink of [true, false]) {
      const idempotencyKey = `by-link-${byLink}`;
      const first = await admitTopUp(harness.database, { ...order, idempotencyKey, byLink });
      assert.equal(first.kind, 'admitted');
      const other = { ...order, idempotencyKey, byLink: !byLink };
      assert.equal((await admitTopUp(harness.database, other)).kind, 'key_reused');
    }
  });
});
