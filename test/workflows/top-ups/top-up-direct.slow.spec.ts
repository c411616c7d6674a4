/** Specification section 4.1, rule 1: a direct top-up takes the amount from the saved card, once. */
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { sql } from '../../../src/store/database.ts';
import type { admitTopUp } from '../../../src/store/top-ups/admit-top-up.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { authenticate } from '../../../src/stripe/authentication.ts';
import { reportPayment } from '../../../src/temporal/start-top-up.ts';
import { requestTopUp, type TopUpResult } from '../../../src/top-ups/request-top-up.ts';
import { acceptedUpdates } from '../../support/accepted-updates.ts';
import { retryUnlessEnded } from '../../support/retry-unless-ended.ts';
import { until } from '../../support/stack.ts';
import type { Micros } from '../../../src/domain/money.ts';
import { changeConsent } from '../../../src/store/top-ups/monthly-ceiling.ts';
import { chooseCard } from '../../../src/store/top-ups/auto-top-ups.ts';
import {
  findProcessorCustomer,
  replaceProcessorCustomer,
} from '../../../src/store/top-ups/processor-customers.ts';
import { createCustomer } from '../../../src/stripe/calls.ts';
import {
  atOnce,
  openTopUpHarness,
  QUICK_RETRIES,
  type Consumer,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

const RETURN_URL = 'http://127.0.0.1:9/top-up/confirm?id=tu_1';
const NOTHING = { credited: 0, movements: 0, lots: 0, lotsMicros: 0 };

describe('a direct top-up', () => {
  let harness: TopUpHarness;

  before(async () => {
    harness = await openTopUpHarness({ SAVE_TEST_CARD: 'false', ...QUICK_RETRIES });
    await harness.startWorker();
  });

  after(async () => {
    await harness.close();
  });

  it('completes with the card that its owner agreed to save at an earlier checkout', async () => {
    const consumer = await harness.newConsumer();
    const checkout = await harness.checkout(consumer, 5);
    await harness.pay(checkout.sessionUrl, '4242424242424242', { save: true });
    await harness.statusBecomes(checkout, 'completed');

    const result = await harness.requestDirect(consumer, 12.5);
    assert.equal(result.kind, 'completed');
    assert.deepEqual(await harness.books(consumer), {
      credited: 17_500_000,
      movements: 2,
      lots: 2,
      lotsMicros: 17_500_000,
    });
  });

  it('fails after a checkout whose payer did not agree to save the card', async () => {
    const consumer = await harness.newConsumer();
    const checkout = await harness.checkout(consumer, 5);
    await harness.pay(checkout.sessionUrl);
    await harness.statusBecomes(checkout, 'completed');

    const result = await harness.requestDirect(consumer, 12.5);
    assert.ok(result.kind === 'failed');
    assert.equal(result.failure.code, 'no_saved_card');
  });

  it('fails without a saved card, and says what to do', async () => {
    const consumer = await harness.newConsumer();
    const result = await harness.requestDirect(consumer, 12.5);
    assert.ok(result.kind === 'failed');
    assert.equal(result.failure.code, 'no_saved_card');
    assert.match(result.failure.message, /hosted checkout instead/);
    assert.deepEqual(await harness.books(consumer), NOTHING);
  });

  it('is refused after five declines within an hour, until another card is saved', async () => {
    const consumer = await withCard('pm_card_chargeCustomerFail');
    for (let declines = 0; declines < 5; declines += 1) {
      assert.equal((await harness.requestDirect(consumer, 12.5)).kind, 'failed');
    }
    const refused = await harness.request(consumer, 'direct', 12.5);
    assert.ok(refused.kind === 'declined_too_often');
    assert.ok(refused.retryAfterMs > 3_000_000 && refused.retryAfterMs <= 3_600_000);

    const checkout = await harness.checkout(consumer, 5);
    await harness.pay(checkout.sessionUrl, '4242424242424242', { save: true });
    await harness.statusBecomes(checkout, 'completed');
    assert.equal((await harness.requestDirect(consumer, 12.5)).kind, 'completed');
  });

  it('is not charged after 15 minutes of failed attempts, even by the payment it prepared', async () => {
    const prepared = await preparedPayment();
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set created_at = now() - interval '16 minutes' where id = ${prepared.topUp.id}
    `);
    await endsUnpaid(prepared, 'payment_too_late');
  });

  it('is not charged above a monthly limit that the owner lowered meanwhile, nor is its prepared payment', async () => {
    const prepared = await preparedPayment();
    const ceiling = 12_490_000 as Micros;
    const { consumerId } = prepared.consumer;
    await changeConsent(harness.database, consumerId, {
      ceilingMicros: ceiling,
      givenBy: 'operator',
    });
    await endsUnpaid(prepared, 'consent_ceiling_reached');
  });

  it('fails when its customer was deleted at Stripe before the payment, though another card is saved', async () => {
    const prepared = await preparedPayment();
    const { consumer } = prepared;
    const deleted = (await findProcessorCustomer(harness.database, consumer.accountId)) ?? '';
    await harness.stripe.customers.del(deleted);
    const created = await createCustomer(harness.stripe, consumer.accountId, deleted);
    await replaceProcessorCustomer(harness.database, consumer.accountId, deleted, created);
    await harness.saveCard(consumer, 'pm_card_mastercard');
    await endsUnpaid(prepared, 'no_saved_card');
    assert.equal((await harness.requestDirect(consumer, 12.5)).kind, 'completed');
  });

  /** A top-up whose payment exists at Stripe, where it cannot be confirmed now. */
  async function preparedPayment() {
    const consumer = await withCard('pm_card_visa');
    const path = '/v1/payment_intents/';
    const away = { method: 'POST', path, kind: 'error', status: 503, times: 1_000 };
    await harness.control('faults', away);
    const { topUp } = await stuck(harness.request(consumer, 'direct', 12.5));
    const { paymentIntentId } = await harness.topUp(topUp.id);
    return { consumer, topUp, paymentIntentId: paymentIntentId ?? '' };
  }

  /** Once Stripe is back. */
  async function endsUnpaid(
    { consumer, topUp, paymentIntentId }: Awaited<ReturnType<typeof preparedPayment>>,
    failureCode: string,
  ): Promise<void> {
    await harness.forgetFaults();
    await retryUnlessEnded(harness.workflow(topUp.id));
    await harness.statusBecomes(topUp, 'failed');
    assert.equal((await harness.topUp(topUp.id)).failureCode, failureCode);
    const intent = await harness.stripe.paymentIntents.retrieve(paymentIntentId);
    assert.equal(intent.status, 'canceled');
    assert.deepEqual(await harness.books(consumer), NOTHING);
  }

  async function stuck(asked: Promise<TopUpResult>): Promise<{ readonly topUp: TopUp }> {
    const result = await asked;
    assert.ok(result.kind === 'pending', result.kind);
    await until(() => harness.stuck(result.topUp));
    return result;
  }

  it('charges a card that was set up at a checkout without asking its owner again', async () => {
    const consumer = await harness.newConsumer();
    const asked = { ...consumer, method: 'checkout', amountMicros: 5_000_000 as Micros } as const;
    const admitted = await requestCheckout(asked);
    await harness.pay(admitted.sessionUrl, '4000002500003155');
    await harness.statusBecomes(admitted, 'completed');
    const { data } = await harness.stripe.checkout.sessions.list({ limit: 1 });
    assert.match(data[0]?.custom_text.submit?.message ?? '', /charge your saved card/);
    assert.equal((await harness.requestDirect(consumer, 12.5)).kind, 'completed');
    const [payment] = await harness.paymentsOf((await harness.topUpsOf(consumer))[0]!);
    assert.equal(payment?.amount, 1_250);
  });

  it('waits for the cardholder if the bank wants that, and ends as the bank decides', async () => {
    const consumer = await harness.newConsumer();
    const checkout = await harness.checkout(consumer, 5);
    // The box saves the card for the next checkout only.
    await harness.pay(checkout.sessionUrl, '4000002500003155', { save: true });
    await harness.statusBecomes(checkout, 'completed');

    const topUp = await waiting(consumer);
    assert.deepEqual(await harness.paymentsOf(topUp), []);
    await confirm(topUp, 'failed');
    await harness.workflow(topUp.id).executeUpdate('retry');
    assert.equal((await harness.topUp(topUp.id)).status, 'pending');

    await confirm(topUp, 'succeeded');
    await harness.statusBecomes(topUp, 'completed');
    assert.equal((await harness.paymentsOf(topUp)).length, 1);
    assert.equal((await harness.books(consumer)).credited, 17_500_000);
    const again = await authenticate(harness.stripe, topUp.paymentIntentId ?? '', RETURN_URL);
    assert.equal(again.kind, 'paid');
    // The cardholder's confirmation has set the card up.
    assert.equal((await harness.requestDirect(consumer, 12.5)).kind, 'completed');
  });

  it('takes no update for a repeated request, whether it waits for the cardholder or is stuck, so that operators can send theirs', async () => {
    const consumer = await withCard('pm_card_authenticationRequired');
    const confirming = () => harness.request(consumer, 'direct', 12.5, 'confirming');
    await repeat(confirming, (topUp) => topUp.authenticationAskedAt !== null);
    await harness.control('faults', { path: '/v1/', kind: 'error', status: 503, times: 1_000 });
    const failing = () => harness.request(consumer, 'direct', 12.5, 'failing');
    await repeat(failing, async (topUp) => Boolean(await harness.stuck(topUp)));
    await harness.forgetFaults();
  });

  async function repeat(
    ask: () => Promise<TopUpResult>,
    waits: (topUp: TopUp) => boolean | Promise<boolean>,
  ): Promise<void> {
    const first = await ask();
    assert.ok(first.kind === 'pending', first.kind);
    await until(async () => waits(await harness.topUp(first.topUp.id)));
    for (let times = 0; times < 5; times += 1) {
      const again = await ask();
      assert.ok(again.kind === 'pending' && again.topUp.id === first.topUp.id, again.kind);
    }
    assert.ok((await acceptedUpdates(harness.workflow(first.topUp.id))) <= 1);
  }

  it('does not count what the cardholder never confirmed as a decline, and expires it after a day', async () => {
    const consumer = await withCard('pm_card_authenticationRequired');
    const topUps: TopUp[] = [];
    for (let times = 0; times < 6; times += 1) topUps.push(await waiting(consumer));
    const [last] = topUps;
    assert.ok(last);
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set created_at = now() - interval '25 hours' where id = ${last.id}
    `);
    await harness.workflow(last.id).executeUpdate('retry');
    await harness.statusBecomes(last, 'expired');
    const intent = await harness.stripe.paymentIntents.retrieve(last.paymentIntentId ?? '');
    assert.equal(intent.status, 'canceled');
    await harness.workflow(topUps[1]?.id ?? '').executeUpdate('cancel');
    await harness.statusBecomes(topUps[1]!, 'expired');
    assert.deepEqual(await harness.books(consumer), NOTHING);
  });

  it('charges the card that its owner chose, and the newest one if that was removed', async () => {
    const consumer = await withCard('pm_card_visa');
    await harness.saveCard(consumer, 'pm_card_mastercard');
    const customer = (await findProcessorCustomer(harness.database, consumer.accountId)) ?? '';
    const [newest, older] = (await harness.stripe.paymentMethods.list({ customer })).data;
    const charged = async () => {
      const result = await harness.requestDirect(consumer, 12.5);
      assert.ok(result.kind === 'completed');
      const { paymentIntentId } = result.topUp;
      const intent = await harness.stripe.paymentIntents.retrieve(paymentIntentId ?? '');
      return intent.payment_method;
    };
    assert.equal(await charged(), newest?.id);
    await chooseCard(harness.database, consumer, older?.id ?? '');
    assert.equal(await charged(), older?.id);
    await harness.stripe.paymentMethods.detach(older?.id ?? '');
    assert.equal(await charged(), newest?.id);
  });

  async function requestCheckout(order: Parameters<typeof admitTopUp>[1]): Promise<TopUp> {
    await changeConsent(harness.database, order.consumerId, {
      ceilingMicros: 1_000_000_000 as Micros,
      givenBy: 'operator',
    });
    const result = await requestTopUp(
      {
        database: harness.database,
        temporal: harness.temporal,
        log: pino({ level: 'silent' }),
        answerMs: 1_000,
      },
      { consumer: order, method: 'checkout', amountMicros: order.amountMicros, savesCard: true },
      atOnce,
    );
    assert.ok(result.kind === 'pending');
    return until(async () => {
      const topUp = await harness.topUp(result.topUp.id);
      return topUp.sessionUrl !== null && topUp;
    });
  }

  /** A direct top-up of $12.50 that the bank wants confirmed. */
  async function waiting(consumer: Consumer): Promise<TopUp> {
    const result = await harness.request(consumer, 'direct', 12.5);
    assert.ok(result.kind === 'pending', result.kind);
    return until(async () => {
      const topUp = await harness.topUp(result.topUp.id);
      return topUp.authenticationAskedAt !== null && topUp;
    });
  }

  /** What the cardholder does on the bank's page. */
  async function confirm({ paymentIntentId }: TopUp, result: string): Promise<void> {
    const next = await authenticate(harness.stripe, paymentIntentId ?? '', RETURN_URL);
    assert.ok(next.kind === 'redirect');
    const answer = await fetch(next.url, {
      method: 'POST',
      body: new URLSearchParams({ result }),
    });
    const { return_url } = (await answer.json()) as { return_url: string };
    assert.equal(new URL(return_url).searchParams.get('redirect_status'), result);
  }

  for (const [card, code] of [['pm_card_chargeCustomerFail', 'card_declined']] as const) {
    it(`fails with ${code} for ${card}, and takes nothing`, async () => {
      const consumer = await withCard(card);
      const result = await harness.requestDirect(consumer, 12.5, 'key');
      assert.ok(result.kind === 'failed');
      assert.equal(result.failure.code, code);
      assert.match(result.failure.message, /hosted checkout instead/);
      assert.deepEqual(await harness.paymentsOf(result.topUp), []);
      assert.deepEqual(await harness.books(consumer), NOTHING);

      const repeated = await harness.requestDirect(consumer, 12.5, 'key');
      const { ageMs } = repeated.kind === 'failed' ? repeated.topUp : assert.fail(repeated.kind);
      const topUp = { ...result.topUp, ageMs };
      assert.deepEqual(repeated, { ...result, isReplay: true, topUp });
    });
  }

  it('fails with card_expired once the saved card has expired', async () => {
    const consumer = await withCard('pm_card_visa');
    const customer = (await findProcessorCustomer(harness.database, consumer.accountId)) ?? '';
    const [card] = (await harness.stripe.paymentMethods.list({ customer })).data;
    await harness.control(`cards/${card?.id}/expire`);
    const result = await harness.requestDirect(consumer, 12.5);
    assert.ok(result.kind === 'failed');
    assert.equal(result.failure.code, 'card_expired');
    assert.match(result.failure.message, /hosted checkout instead/);
    assert.deepEqual(await harness.books(consumer), NOTHING);
  });

  it('closes a declined payment at the processor, and stays failed when the answer to that is lost', async () => {
    const consumer = await withCard('pm_card_chargeCustomerFail');
    const path = '/v1/payment_intents/';
    // Two calls: the payment is confirmed, then closed.
    for (const kind of ['delay', 'do_then_error']) {
      await harness.control('faults', { method: 'POST', path, kind, ms: 1, times: 1 });
    }
    const result = await harness.requestDirect(consumer, 12.5);
    assert.ok(result.kind === 'failed');
    assert.equal(result.failure.code, 'card_declined');
    assert.deepEqual(await harness.faults(), []);
    const { paymentIntentId } = result.topUp;
    const intent = await harness.stripe.paymentIntents.retrieve(paymentIntentId ?? '');
    assert.equal(intent.status, 'canceled');
    await harness.workflow(result.topUp.id).result();
    await reportPayment(harness.temporal, result.topUp);
    await harness.workflow(result.topUp.id).result();
    assert.equal((await harness.topUp(result.topUp.id)).status, 'failed');
  });

  it('never charges a card again that its bank declined permanently, and charges another one', async () => {
    const consumer = await withCard('pm_card_visa');
    assert.equal((await harness.requestDirect(consumer, 12.5)).kind, 'completed');
    const customer = (await findProcessorCustomer(harness.database, consumer.accountId)) ?? '';
    const [card] = (await harness.stripe.paymentMethods.list({ customer })).data;
    await harness.control(`cards/${card?.id}/lose`);
    const payments: (string | null)[] = [];
    // More often than a card may be declined in an hour: these do not reach the bank.
    for (let times = 0; times < 7; times += 1) {
      const result = await harness.requestDirect(consumer, 12.5);
      assert.ok(result.kind === 'failed', result.kind);
      assert.equal(result.failure.code, 'card_declined');
      assert.match(result.failure.message, /does not accept this card any more.*hosted checkout/);
      payments.push(result.topUp.paymentIntentId);
    }
    assert.equal(payments.filter((id) => id !== null).length, 1);
    await harness.saveCard(consumer, 'pm_card_mastercard');
    assert.equal((await harness.requestDirect(consumer, 12.5)).kind, 'completed');
    assert.equal((await harness.books(consumer)).credited, 25_000_000);
  });

  it('takes the money once for five requests with one key at once', async () => {
    const consumer = await withCard('pm_card_visa');
    const results = await Promise.all(
      Array.from({ length: 5 }, () => harness.requestDirect(consumer, 20, 'key')),
    );
    assert.deepEqual([...new Set(results.map(({ kind }) => kind))], ['completed']);
    const [first] = results;
    assert.ok(first && 'topUp' in first);
    assert.equal((await harness.paymentsOf(first.topUp)).length, 1);
    assert.equal((await harness.books(consumer)).credited, 20_000_000);
  });

  for (const fault of [
    { path: '/v1/payment_intents', kind: 'do_then_drop' },
    { path: '/v1/payment_intents/', kind: 'do_then_drop' },
    { path: '/v1/payment_intents', kind: 'do_then_error', status: 500 },
    { path: '/v1/payment_intents/', kind: 'do_then_error', status: 500 },
    { path: '/v1/payment_intents/', kind: 'error', status: 500 },
    { path: '/v1/payment_intents', kind: 'drop' },
  ]) {
    it(`takes the money once when POST ${fault.path} suffers ${fault.kind}`, async () => {
      const consumer = await withCard('pm_card_visa');
      await harness.control('faults', { method: 'POST', ...fault });
      const result = await harness.requestDirect(consumer, 20);
      assert.ok(result.kind === 'completed', result.kind);
      assert.equal((await harness.paymentsOf(result.topUp)).length, 1);
      assert.equal((await harness.books(consumer)).credited, 20_000_000);
    });
  }

  it('requires the consent of the owner', async () => {
    const consumer = await withCard('pm_card_visa');
    await changeConsent(harness.database, consumer.consumerId, {
      ceilingMicros: null,
      givenBy: 'operator',
    });
    assert.deepEqual(await harness.requestDirect(consumer, 20), { kind: 'consent_required' });
  });

  it('never takes more in a month than the owner consented to, under concurrent requests', async () => {
    const consumer = await withCard('pm_card_visa');
    await changeConsent(harness.database, consumer.consumerId, {
      ceilingMicros: 100_000_000 as Micros,
      givenBy: 'operator',
    });
    const results = await Promise.all(
      Array.from({ length: 6 }, () => harness.requestDirect(consumer, 30)),
    );
    const kinds = results.map(({ kind }) => kind).toSorted();
    assert.deepEqual(kinds, [
      'completed',
      'completed',
      'completed',
      'consent_ceiling_reached',
      'consent_ceiling_reached',
      'consent_ceiling_reached',
    ]);
    assert.equal((await harness.books(consumer)).credited, 90_000_000);
    assert.equal((await harness.requestDirect(consumer, 10)).kind, 'completed');
    assert.deepEqual(await harness.requestDirect(consumer, 0.5), {
      kind: 'consent_ceiling_reached',
      leftMicros: 0,
    });
  });

  /** A consumer whose customer has this card saved. */
  async function withCard(card: string): Promise<Consumer> {
    const consumer = await harness.newConsumer();
    const failed = await harness.requestDirect(consumer, 1);
    assert.equal(failed.kind, 'failed');
    await harness.saveCard(consumer, card);
    return consumer;
  }
});
