/**
 * Events are nudges, so their order means nothing: reported at any time, twice or never, they leave the books like the
 * processor's. The orders are drawn from a seed, which a failure names.
 */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import type { Stripe } from 'stripe';
import { payerOf, type Payer } from '../../support/payer.ts';
import { SEED } from '../../support/random.ts';
import { proveBooks } from '../../support/books.ts';
import { until } from '../../support/stack.ts';
import { openTopUpHarness, type TopUpHarness } from '../../support/top-up-harness.ts';

/** `npm run test:faults:orders` runs every order. */
const ORDERS = 6;
/** How many run at the same time. */
const LANES = 6;

interface Cycle {
  /** What happens at the processor to a payment of $10.00, one after the other. */
  readonly actions: readonly ((harness: TopUpHarness, intent: string) => Promise<void>)[];
  readonly balance: number;
  readonly status: string;
}

const refundOf = async (harness: TopUpHarness, intent: string) =>
  (await harness.stripe.refunds.list({ payment_intent: intent })).data[0]?.id;
const disputeOf = async (harness: TopUpHarness, intent: string) =>
  (await harness.stripe.disputes.list({ payment_intent: intent })).data[0]?.id;
const makeRefund = async (harness: TopUpHarness, intent: string) =>
  void (await harness.stripe.refunds.create({ payment_intent: intent, amount: 400 }));
const openDispute = (harness: TopUpHarness, intent: string) =>
  harness.control('disputes', { payment_intent: intent, amount: 600 });
const close = (status: 'won' | 'lost') => async (harness: TopUpHarness, intent: string) =>
  harness.control(`disputes/${await disputeOf(harness, intent)}/close`, { status });

const CYCLES: Readonly<Record<string, Cycle>> = {
  'a refund': { actions: [makeRefund], balance: 6_000_000, status: 'partially_refunded' },
  'a refund that fails': {
    actions: [
      makeRefund,
      async (harness, intent) => harness.control(`refunds/${await refundOf(harness, intent)}/fail`),
    ],
    balance: 10_000_000,
    status: 'completed',
  },
  'a dispute that is won': {
    actions: [openDispute, close('won')],
    balance: 10_000_000,
    status: 'completed',
  },
  'a dispute that is lost, after a refund': {
    actions: [makeRefund, openDispute, close('lost')],
    balance: 0,
    status: 'charged_back',
  },
};

/** For each moment after an action: which of the existing events arrive, in this order. */
const anyOrder = fc.array(fc.array(fc.nat(), { maxLength: 3 }), { minLength: 4, maxLength: 4 });

describe('the events of', () => {
  let harness: TopUpHarness;

  before(async () => {
    harness = await openTopUpHarness({ FIRST_ASK_MS: '3600000' });
    await harness.startWorker();
    await harness.control('webhooks', { mode: 'drop' });
  });
  after(async () => {
    await harness.close();
  });

  for (const [name, cycle] of Object.entries(CYCLES)) {
    it(`${name} end in the same books in ${ORDERS} orders (SEED=${SEED})`, async () => {
      const orders = fc.sample(anyOrder, { seed: SEED, numRuns: ORDERS });
      const payers: Payer[] = [];
      const queue = orders.entries();
      const lane = async () => {
        for (const [index, order] of queue) payers[index] = await live(cycle, order);
      };
      await Promise.all(Array.from({ length: LANES }, lane));
      for (const [index, payer] of payers.entries()) {
        const shown = { ...(await payer.money()), order: orders[index] };
        assert.deepEqual(shown, { balance: cycle.balance, held: 0, debt: 0, order: orders[index] });
      }
    });
  }

  it('all of them leave books in which doctor finds nothing', () => proveBooks(harness.env));

  async function live({ actions, status }: Cycle, order: readonly number[][]): Promise<Payer> {
    const payer = payerOf(harness.database, await harness.newConsumer());
    const topUp = await harness.checkout(payer, 10);
    await harness.pay(topUp.sessionUrl);
    const session = await harness.stripe.checkout.sessions.retrieve(topUp.sessionId ?? '');
    const intent = typeof session.payment_intent === 'string' ? session.payment_intent : '';
    const about = () => eventsOf(session, intent);
    const deliver = async (events: readonly string[], picks: readonly number[]) => {
      for (const pick of picks)
        await harness.control(`events/${events[pick % events.length]}/deliver`);
    };
    await deliver(await about(), order[0] ?? []);
    for (const [index, action] of actions.entries()) {
      await action(harness, intent);
      await deliver(await about(), order[index + 1] ?? []);
    }
    // At least the newest of all and one of the two of the payment, in a random order too.
    const events = await about();
    const last = [events.at(-1) ?? '', events[(order[0]?.length ?? 0) % 2] ?? ''];
    const final = (order[1]?.length ?? 0) % 2 === 0 ? last : last.toReversed();
    for (const id of final) await harness.control(`events/${id}/deliver`);
    await until(async () => {
      const now = (await harness.topUp(topUp.id)).status;
      return now === status && harness.hasEnded(topUp);
    });
    return payer;
  }

  /** The oldest first, without those that name neither, such as the customer's. */
  async function eventsOf(session: Stripe.Checkout.Session, intent: string): Promise<string[]> {
    const ids: string[] = [];
    const since = { created: { gte: session.created }, limit: 100 };
    for await (const { id, data, type } of harness.stripe.events.list(since)) {
      const object = data.object as { id?: string; payment_intent?: unknown };
      const isAbout =
        object.id === session.id || object.id === intent || object.payment_intent === intent;
      if (isAbout && NUDGES.test(type)) ids.unshift(id);
    }
    return ids;
  }
});

/** The types that our endpoint is subscribed to. */
const NUDGES =
  /^(checkout\.session\.completed|payment_intent\.succeeded|refund\.|charge\.(refund|dispute))/;
