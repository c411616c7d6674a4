/** From a charge's notice to the end of an automatic top-up, and its effect on the next one. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { wireId } from '../../../src/domain/ids.ts';
import { asMicros, type Micros } from '../../../src/domain/money.ts';
import { findOwnerEmail } from '../../../src/store/accounts/accounts.ts';
import { listMails } from '../../../src/store/console/mails.ts';
import {
  findAutoTopUp,
  setAutoTopUp,
  type AutoTopUpSettings,
} from '../../../src/store/top-ups/auto-top-ups.ts';
import { creditManually } from '../../../src/store/top-ups/credit-top-up.ts';
import { changeConsent } from '../../../src/store/top-ups/monthly-ceiling.ts';
import { sql } from '../../../src/store/database.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import {
  findProcessorCustomer,
  replaceProcessorCustomer,
} from '../../../src/store/top-ups/processor-customers.ts';
import { createCustomer } from '../../../src/stripe/calls.ts';
import { reportReversal } from '../../../src/temporal/start-reversals.ts';
import { newDraft, post } from '../../support/charge-drafts.ts';
import { dispute, payerOf, processorId } from '../../support/payer.ts';
import { until } from '../../support/stack.ts';
import {
  openTopUpHarness,
  type Consumer,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

const OFF = /^Automatic top-ups were turned off for /;

describe('an automatic top-up', () => {
  let harness: TopUpHarness;

  before(async () => {
    harness = await openTopUpHarness({
      SAVE_TEST_CARD: 'false',
      AUTO_TOP_UP_RETRY_MS: '200',
      DEV_MAIL: 'true',
      FIRST_ASK_MS: '3600000',
    });
    await harness.startWorker();
  });

  after(async () => {
    await harness.close();
  });

  it('is followed by another at the next charge when its amount was too small', async () => {
    const consumer = await newConsumer('pm_card_visa', { threshold: 35 });
    await harness.charge(consumer);
    await until(async () => (await harness.automaticTopUps(consumer))[0]?.status === 'completed');
    await harness.charge(consumer);
    await until(async () => (await harness.automaticTopUps(consumer))[1]?.status === 'completed');
    await harness.charge(consumer);
    await until(async () => (await harness.books(consumer)).credited === 50_000_000);
    assert.equal((await harness.automaticTopUps(consumer)).length, 2);
  });

  it('is recognizable in the Temporal UI', async () => {
    const consumer = await newConsumer('pm_card_visa', { threshold: 10 });
    await harness.charge(consumer);
    const topUp = await until(async () => (await harness.automaticTopUps(consumer))[0]);
    await until(async () => (await harness.topUp(topUp.id)).status === 'completed');
    const { staticSummary } = await harness.workflow(topUp.id).describe();
    assert.equal(await staticSummary(), 'Top-up of $20.00, automatic');
  });

  it('is tried three times when the card is declined, then turns itself off and says so', async () => {
    const consumer = await newConsumer('pm_card_chargeCustomerFail', { threshold: 10 });
    for (const tries of [1, 2, 3]) {
      await harness.charge(consumer);
      await until(async () => {
        const topUps = await harness.automaticTopUps(consumer);
        return topUps.length === tries && topUps.every(({ status }) => status === 'failed');
      });
    }
    const found = await findAutoTopUp(harness.database, consumer);
    assert.deepEqual([found?.status, found?.reason], ['off', 'card_declined']);
    const topUps = await harness.automaticTopUps(consumer);
    assert.deepEqual(
      new Set(topUps.map(({ failureCode }) => failureCode)),
      new Set(['card_declined']),
    );
    const [first, , last] = topUps;
    const said = async (topUp: TopUp | undefined) => {
      const handle = harness.workflow(topUp?.id ?? '');
      await handle.result();
      return JSON.stringify(await handle.query('__temporal_workflow_metadata'));
    };
    assert.match(await said(first), /pause before they charge the card again/);
    assert.match(await said(last), /turned themselves off/);
    const state = { status: 'off', reason: 'card_declined' };
    assert.deepEqual(await failAgain(last), state);
    await harness.charge(consumer);
    await until(async () => (await harness.waitingNotices()) === 0);
    assert.equal((await harness.automaticTopUps(consumer)).length, 3);
  });

  /** Changes some of the settings with which it became due: $20.00 at a time. */
  const changed = (change: Partial<AutoTopUpSettings>) => async (consumer: Consumer) => {
    const settings = await findAutoTopUp(harness.database, consumer);
    assert.ok(settings);
    await setAutoTopUp(harness.database, consumer, { ...settings, ...change });
  };
  const allowed = (ceiling: Micros | null) => (consumer: Consumer) =>
    changeConsent(harness.database, consumer.consumerId, {
      ceilingMicros: ceiling,
      givenBy: 'operator',
    });

  for (const [what, change, ending] of [
    ['its owner turns it off', (consumer) => setAutoTopUp(harness.database, consumer, null), null],
    ['its owner lowers its amount', changed({ amountMicros: asMicros(19_990_000) }), null],
    ['its owner lowers its monthly limit', changed({ ceilingMicros: asMicros(39_990_000) }), null],
    [
      'its owner lowers the monthly limit of the card',
      allowed(asMicros(39_990_000)),
      'consent_ceiling_reached',
    ],
    ['its owner withdraws the consent', allowed(null), 'consent_required'],
    [
      'a dispute turns it off',
      async (consumer: Consumer) => {
        const payer = payerOf(harness.database, consumer);
        await payer.report(await payer.topUp(1_000_000), dispute(processorId('dp'), 1_000_000));
      },
      null,
    ],
  ] as readonly [string, (consumer: Consumer) => Promise<unknown>, string | null][]) {
    it(`charges nothing that was due while Stripe was away, if ${what} meanwhile`, async () => {
      const consumer = await newConsumer('pm_card_visa', { threshold: 35 });
      await harness.charge(consumer);
      await until(async () => (await harness.automaticTopUps(consumer))[0]?.status === 'completed');
      const away = { method: 'GET', path: '/v1/payment_methods', kind: 'error', status: 503 };
      await harness.control('faults', { ...away, times: 1_000 });
      await harness.charge(consumer);
      await until(async () => (await harness.faults())[0]!.times < 1_000);
      const [, due] = await harness.automaticTopUps(consumer);
      assert.equal(due?.status, 'pending');
      await change(consumer);
      await harness.forgetFaults();
      await harness.workflow(due.id).result();
      const { status, failureCode } = await harness.topUp(due.id);
      assert.deepEqual([status, failureCode], [ending === null ? 'expired' : 'failed', ending]);
      assert.deepEqual(await harness.paymentsOf(due), []);
      if (ending === null) return;
      const found = await findAutoTopUp(harness.database, consumer);
      assert.deepEqual([found?.status, found?.reason], ['waiting', ending]);
    });
  }

  for (const [when, away] of [
    ['before', { method: 'GET', path: '/v1/payment_methods' }],
    ['after', { method: 'POST', path: '/v1/payment_intents/' }],
  ] as const) {
    it(`charges nothing if the balance is no longer low when Stripe is back, which was away ${when} the payment was prepared, and is asked for again`, async () => {
      const consumer = await newConsumer('pm_card_visa', { threshold: 10 });
      await harness.control('faults', { ...away, kind: 'error', status: 503, times: 1_000 });
      await harness.charge(consumer);
      await until(async () => (await harness.faults())[0]!.times < 1_000);
      const [due] = await harness.automaticTopUps(consumer);
      assert.equal(due?.status, 'pending');
      await creditDollar(consumer);
      await harness.forgetFaults();
      await harness.workflow(due.id).result();
      const { status, paymentIntentId } = await harness.topUp(due.id);
      assert.equal(status, 'expired');
      assert.deepEqual(await harness.paymentsOf(due), []);
      const found = await findAutoTopUp(harness.database, consumer);
      assert.deepEqual([found?.status, found?.reason], ['on', null]);
      assert.equal(paymentIntentId !== null, when === 'after');
      if (paymentIntentId !== null) {
        const intent = await harness.stripe.paymentIntents.retrieve(paymentIntentId);
        assert.equal(intent.status, 'canceled');
      }
      await harness.charge(consumer);
      await until(async () => (await harness.automaticTopUps(consumer))[1]?.status === 'completed');
    });
  }

  it('is credited if it was paid while the balance was low, although a retry finds it no longer low', async () => {
    const consumer = await newConsumer('pm_card_visa', { threshold: 10 });
    const path = '/v1/payment_intents/';
    await harness.control('faults', { method: 'GET', path, kind: 'drop', times: 1_000 });
    // The client repeats a request whose connection was closed once.
    await harness.control('faults', { method: 'POST', path, kind: 'do_then_drop', times: 2 });
    await harness.charge(consumer);
    await until(async () => (await harness.faults())[0]!.times < 1_000);
    const [due] = await harness.automaticTopUps(consumer);
    assert.equal(due?.status, 'pending');
    await creditDollar(consumer);
    await harness.forgetFaults();
    await harness.statusBecomes(due, 'completed');
    assert.equal((await harness.paymentsOf(due)).length, 1);
  });

  it('is paid at any balance if a refused charge asked for it', async () => {
    const consumer = await newConsumer('pm_card_visa', { threshold: 10 });
    const [refused] = await post(harness.database, [newDraft(consumer, 30_000_000)]);
    assert.equal(refused?.kind, 'insufficient');
    await until(async () => (await harness.automaticTopUps(consumer))[0]?.status === 'completed');
  });

  it('counts in the month in which it is paid, even if an earlier month requested it', async () => {
    const consumer = await newConsumer('pm_card_visa', { threshold: 10 });
    const due = await requestedLastMonth(consumer);
    await allowed(asMicros(50_000_000))(consumer);
    const direct = (dollars: number) => harness.request(consumer, 'direct', dollars);
    const full = { kind: 'consent_ceiling_reached', leftMicros: 30_000_000 };
    assert.deepEqual(await direct(30.01), full);
    await harness.forgetFaults();
    await harness.statusBecomes(due, 'completed');
    assert.deepEqual(await direct(30.01), full);
    assert.equal((await harness.requestDirect(consumer, 30)).kind, 'completed');
  });

  it('is not paid if this month has taken what the owner allows since the month of its request', async () => {
    const consumer = await newConsumer('pm_card_visa', { threshold: 50 });
    const direct = await harness.requestDirect(consumer, 30);
    assert.equal(direct.kind, 'completed');
    const due = await requestedLastMonth(consumer);
    await allowed(asMicros(49_990_000))(consumer);
    await harness.forgetFaults();
    await harness.workflow(due.id).result();
    assert.equal((await harness.topUp(due.id)).failureCode, 'consent_ceiling_reached');
    assert.deepEqual(await harness.paymentsOf(due), []);
  });

  it('expires when its customer was deleted at Stripe before the payment, and the next one is paid', async () => {
    const consumer = await newConsumer('pm_card_visa', { threshold: 10 });
    const path = '/v1/payment_intents/';
    const away = { method: 'POST', path, kind: 'error', status: 503, times: 1_000 };
    await harness.control('faults', away);
    await harness.charge(consumer);
    await until(async () => (await harness.faults())[0]!.times < 1_000);
    const [due] = await harness.automaticTopUps(consumer);
    assert.ok(due?.paymentIntentId);
    const customerOf = () => findProcessorCustomer(harness.database, consumer.accountId);
    const deleted = (await customerOf()) ?? '';
    await harness.stripe.customers.del(deleted);
    const created = await createCustomer(harness.stripe, consumer.accountId, deleted);
    await replaceProcessorCustomer(harness.database, consumer.accountId, deleted, created);
    const cardId = await harness.saveCard(consumer, 'pm_card_visa');
    await harness.forgetFaults();
    await harness.workflow(due.id).result();
    assert.equal((await harness.topUp(due.id)).status, 'expired');
    const intent = await harness.stripe.paymentIntents.retrieve(due.paymentIntentId);
    assert.equal(intent.status, 'canceled');
    await until(() => harness.isReported(cardId));
    await harness.charge(consumer);
    await until(async () => (await harness.automaticTopUps(consumer))[1]?.status === 'completed');
  });

  for (const [card, reason, said] of [
    ['pm_card_createDispute', 'payment_disputed', /payment .+ was disputed/],
    ['pm_card_createIssuerFraudRecord', 'fraud_warning', /reported a payment .+ as possible fraud/],
  ] as const) {
    it(`turns itself off and says so after a payment with ${card}, until its owner turns it on again`, async () => {
      const consumer = await newConsumer(card, { threshold: 10 });
      await harness.charge(consumer);
      const state = async () => {
        const found = await findAutoTopUp(harness.database, consumer);
        return [found?.status, found?.reason];
      };
      await until(async () => (await state())[0] === 'off');
      assert.deepEqual(await state(), ['off', reason]);
      assert.match((await mailTo(consumer)).body, said);
      // The balance is too low again.
      for (let n = 0; n < 9; n += 1) await harness.charge(consumer);
      await until(async () => (await harness.waitingNotices()) === 0);
      const [first, ...more] = await harness.automaticTopUps(consumer);
      assert.deepEqual([first?.status, more], ['disputed', []]);

      const found = await findAutoTopUp(harness.database, consumer);
      assert.ok(found);
      await setAutoTopUp(harness.database, consumer, found);
      await reportReversal(harness.temporal, first!);
      await until(async () => harness.isQuiet(first!));
      assert.deepEqual(await state(), ['on', null]);
    });
  }

  it('turns itself off at the first decline that is permanent', async () => {
    const consumer = await newConsumer('pm_card_visa', { threshold: 10 });
    const customer = (await findProcessorCustomer(harness.database, consumer.accountId)) ?? '';
    const [card] = (await harness.stripe.paymentMethods.list({ customer })).data;
    await harness.control(`cards/${card?.id}/lose`);
    await harness.charge(consumer);
    await until(async () => (await harness.automaticTopUps(consumer))[0]?.status === 'failed');
    const found = await findAutoTopUp(harness.database, consumer);
    assert.deepEqual([found?.status, found?.reason], ['off', 'card_declined']);
    assert.match((await mailTo(consumer)).body, /You can use or save another card under Balance/);
  });

  it('ends as soon as Stripe reports a decline after the confirmation, whether or not the browser comes back', async () => {
    const consumer = await newConsumer('pm_card_authenticationRequired', { threshold: 10 });
    await harness.charge(consumer);
    const topUp = await until(async () => {
      const [first] = await harness.automaticTopUps(consumer);
      return first !== undefined && first.authenticationAskedAt !== null && first;
    });
    await until(() => harness.isReported(topUp.paymentIntentId ?? ''));
    await assert.rejects(
      harness.stripe.paymentIntents.confirm(topUp.paymentIntentId ?? '', {
        payment_method: 'pm_card_chargeDeclined',
      }),
      /declined/,
    );
    await harness.statusBecomes(topUp, 'failed');
    assert.equal((await harness.topUp(topUp.id)).failureCode, 'card_declined');
    const found = await findAutoTopUp(harness.database, consumer);
    assert.deepEqual([found?.status, found?.reason], ['waiting', 'card_declined']);
  });

  async function creditDollar(consumer: Consumer): Promise<void> {
    await harness.database.transaction((tx) =>
      creditManually(tx, [{ ...consumer, amountMicros: asMicros(1_000_000) }]),
    );
  }

  /** It could not be paid yet, because Stripe is away. */
  async function requestedLastMonth(consumer: Consumer): Promise<TopUp> {
    const away = { method: 'GET', path: '/v1/payment_methods', kind: 'error', status: 503 };
    await harness.control('faults', { ...away, times: 1_000 });
    await harness.charge(consumer);
    await until(async () => (await harness.faults())[0]!.times < 1_000);
    const [due] = await harness.automaticTopUps(consumer);
    assert.ok(due);
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set created_at = created_at - interval '32 days' where id = ${due.id}
    `);
    return due;
  }

  async function mailTo({ accountId }: Consumer) {
    // It looks for mails that are owed as soon as it starts.
    await harness.startWorker();
    const email = await findOwnerEmail(harness.database, accountId);
    return until(async () => {
      const mails = await listMails(harness.database);
      return mails.find(({ recipient, subject }) => recipient === email && OFF.test(subject));
    });
  }

  /** The step once more, as after a worker that was killed before it could report the result. */
  async function failAgain(topUp: TopUp | undefined): Promise<unknown> {
    return harness.temporal.client.activity.execute('failTopUp', {
      id: randomUUID(),
      taskQueue: harness.temporal.taskQueue,
      args: [wireId('topUp', topUp?.id ?? '')],
      startToCloseTimeout: '3m',
      retry: { maximumAttempts: 1 },
    });
  }

  /** With this card saved. */
  async function newConsumer(
    card: string,
    { threshold }: { threshold: number },
  ): Promise<Consumer> {
    const consumer = await harness.newConsumer();
    const failed = await harness.requestDirect(consumer, 1);
    assert.equal(failed.kind, 'failed');
    const cardId = await harness.saveCard(consumer, card);
    // A later report would end the pause after a decline.
    await until(() => harness.isReported(cardId));
    await harness.topUpAutomatically(consumer, threshold);
    return consumer;
  }
});
