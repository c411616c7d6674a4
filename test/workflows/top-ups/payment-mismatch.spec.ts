/**
 * A payment that does not match its top-up credits nothing. The top-up ends once all of the payment is refunded, or an
 * operator cancels it.
 */
import assert from 'node:assert/strict';
import { Stripe } from 'stripe';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { listDifferences } from '../../../src/store/top-ups/reconciliation.ts';
import { sql } from '../../../src/store/database.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { examine, readPage } from '../../../src/stripe/reconcile.ts';
import { reportPayment } from '../../../src/temporal/start-top-up.ts';
import type { TopUpProgress } from '../../../workflows/messages.ts';
import { payMismatched } from '../../support/mismatched.ts';
import {
  openTopUpHarness,
  QUICK_RETRIES,
  type Consumer,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

describe('a top-up whose payment does not match it', () => {
  let harness: TopUpHarness;
  let consumer: Consumer;

  before(async () => {
    harness = await openTopUpHarness({
      FIRST_ASK_MS: '3600000',
      RECONCILE_REVIEW_MS: '300,1000,3000,15000',
      ...QUICK_RETRIES,
    });
    await harness.startWorker();
  });
  beforeEach(async () => {
    await harness.control('webhooks', { mode: 'deliver' });
    consumer = await harness.newConsumer();
  });
  afterEach(async () => {
    assert.equal((await harness.books(consumer)).credited, 0);
    assert.deepEqual(await examineLedger(harness.database), []);
  });
  after(() => harness.close());

  it('waits for an operator, and expires once all of the payment is refunded', async () => {
    const { topUp, intent } = await mismatched();
    // A report of a refund may end the workflow before the operator acts.
    await harness.control('webhooks', { mode: 'drop' });
    const workflow = harness.workflow(topUp.id);
    await harness.stripe.refunds.create({ payment_intent: intent, amount: 1_000 });
    await workflow.executeUpdate('retry');
    assert.equal((await progress(topUp)).waitingFor, 'operator');
    assert.equal((await harness.topUp(topUp.id)).status, 'pending');
    await harness.stripe.refunds.create({ payment_intent: intent });
    await workflow.executeUpdate('retry');
    await harness.statusBecomes(topUp, 'expired');
    await workflow.result();
  });

  it('expires when an operator cancels it after the refund', async () => {
    const { topUp, intent } = await mismatched();
    await harness.control('webhooks', { mode: 'drop' });
    await harness.stripe.refunds.create({ payment_intent: intent });
    await harness.workflow(topUp.id).executeUpdate('cancel');
    await harness.statusBecomes(topUp, 'expired');
  });

  it('expires by reconciliation, though its workflow was terminated', async () => {
    const { topUp, intent } = await mismatched();
    await harness.workflow(topUp.id).terminate();
    await harness.stripe.refunds.create({ payment_intent: intent });
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set created_at = now() - interval '17 days' where id = ${topUp.id}
    `);
    await harness.reconcile();
    await harness.statusBecomes(topUp, 'expired');
    assert.deepEqual(await listDifferences(harness.database), []);
  });

  it('expires when an operator cancels it and keeps the payment, which reconciliation lists', async () => {
    const { topUp, intent } = await mismatched();
    await harness.workflow(topUp.id).executeUpdate('cancel');
    await harness.statusBecomes(topUp, 'expired');
    await harness.workflow(topUp.id).result();
    await harness.reconcile();
    const [difference, ...more] = await listDifferences(harness.database);
    assert.deepEqual(more, []);
    assert.deepEqual(
      [difference?.kind, difference?.paymentIntentIds],
      ['payment_mismatch', [intent]],
    );
    // What is reported about the payment later changes nothing, and waits for nobody.
    await reportPayment(harness.temporal, topUp);
    await harness.workflow(topUp.id).result();
    assert.equal((await harness.topUp(topUp.id)).status, 'expired');
  });

  it('is listed in another currency too, although its bank warned of fraud, until all of it is refunded', async () => {
    const { topUp, intent } = await mismatched();
    await harness.control('fraud-warnings', { payment_intent: intent });
    const books = { database: harness.database, stripe: inEuros() };
    const until = Math.floor(Date.now() / 1_000) + 60;
    const suspects = async () => {
      const list = 'earlyFraudWarnings';
      const page = await readPage(books, { list, since: 0, until, after: null });
      return page.suspects.filter(({ topUpId }) => topUpId === topUp.id);
    };
    const suspect = { topUpId: topUp.id, paymentIntentId: intent };
    assert.deepEqual(await suspects(), [suspect]);
    const { differences } = await examine(books, suspect);
    assert.deepEqual(
      differences.map(({ kind }) => kind),
      ['payment_mismatch'],
    );
    await harness.stripe.refunds.create({ payment_intent: intent });
    assert.deepEqual(await suspects(), [suspect]);
    assert.deepEqual((await examine(books, suspect)).differences, []);
  });

  function mismatched() {
    return payMismatched(harness, consumer);
  }

  /** Shows every payment in euros: the simulator makes them in dollars only. */
  function inEuros(): Stripe {
    const { secretKey, apiBase } = harness.config.stripe;
    return new Stripe(secretKey, {
      host: apiBase?.hostname ?? '',
      port: apiBase?.port ?? '',
      protocol: 'http',
      httpClient: Stripe.createFetchHttpClient(async (input, init) => {
        const answer = await fetch(input, init);
        const body = (await answer.text()).replaceAll(/"currency": ?"usd"/g, '"currency":"eur"');
        return new Response(body, answer);
      }),
    });
  }

  function progress({ id }: TopUp): Promise<TopUpProgress> {
    return harness.workflow(id).query<TopUpProgress>('status');
  }
});
