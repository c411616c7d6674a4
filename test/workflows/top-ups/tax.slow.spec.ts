/** Tax on top-ups: the net amount is credited, and every refund and dispute takes its exact share of it back. */
import assert from 'node:assert/strict';
import type { Stripe } from 'stripe';
import { Type } from 'typebox';
import { wireId } from '../../../src/domain/ids.ts';
import type { Micros } from '../../../src/domain/money.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { listDifferences } from '../../../src/store/top-ups/reconciliation.ts';
import { nullable, row, sql } from '../../../src/store/database.ts';
import { changeConsent } from '../../../src/store/top-ups/monthly-ceiling.ts';
import { findProcessorCustomer } from '../../../src/store/top-ups/processor-customers.ts';
import { noteMissingInvoices } from '../../../src/store/top-ups/invoices.ts';
import { requestRefund } from '../../../src/store/top-ups/request-refund.ts';
import { admitTopUp } from '../../../src/store/top-ups/admit-top-up.ts';
import { claimTopUp } from '../../../src/store/top-ups/claim-top-up.ts';
import { planTax, recordTaxCalculation } from '../../../src/store/top-ups/plan-payment.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { takeOverSince } from '../../../src/stripe/after-restore.ts';
import { confirmIntent, createIntent, createSession } from '../../../src/stripe/calls.ts';
import { listCards } from '../../../src/stripe/cards.ts';
import { calculateTax } from '../../../src/stripe/tax.ts';
import { idOf } from '../../../src/stripe/verdict.ts';
import { reportReversal } from '../../../src/temporal/start-reversals.ts';
import { proveBooks } from '../../support/books.ts';
import { endAll } from '../../support/end-all.ts';
import { control } from '../../support/payments.ts';
import { payerOf, type Payer } from '../../support/payer.ts';
import { until, type Server } from '../../support/stack.ts';
import {
  openTopUpHarness,
  QUICK_RETRIES,
  type Consumer,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

const invoiceRow = row(Type.Object({ invoiceId: nullable(Type.String()) }));

interface Paid {
  readonly payer: Payer;
  readonly topUp: TopUp;
  readonly intent: string;
}

function sorted(cents: readonly number[]): number[] {
  return cents.toSorted((one, other) => one - other);
}

describe('a taxed top-up', () => {
  let harness: TopUpHarness;
  let worker: Server;

  before(async () => {
    harness = await openTopUpHarness({
      STRIPE_TAX: 'automatic',
      SAVE_TEST_CARD: 'false',
      FIRST_ASK_MS: '3600000',
      RECONCILE_EVERY_SECONDS: '86400',
      RECONCILE_REVIEW_MS: '500,1000,2000,15000',
      ...QUICK_RETRIES,
    });
    worker = await harness.startWorker();
  });
  afterEach(async () => assert.deepEqual(await examineLedger(harness.database), []));
  after(() =>
    endAll(
      () => proveBooks(harness.env),
      () => harness.close(),
    ),
  );

  it('credits the net amount of a checkout, and has its tax and invoice in the books', async () => {
    const { payer, topUp, intent } = await paid(20);
    assert.equal((await payer.money()).balance, 20_000_000);
    // 8.875 % of $20.00 is $1.775.
    assert.deepEqual([topUp.isTaxed, topUp.taxMicros], [true, 1_780_000]);
    const payment = await harness.stripe.paymentIntents.retrieve(intent);
    assert.equal(payment.amount_received, 2_178);
    assert.match(await invoiceOf(topUp), /^in_/);
  });

  it("invoices a payment by a top-up link to its payer, and keeps the owner's address", async () => {
    const { payer } = await paid(20);
    const owner = await findProcessorCustomer(harness.database, payer.accountId);
    const checkout = await harness.checkout(payer, 10, { byLink: true });
    await harness.pay(checkout.sessionUrl, '4242424242424242', { state: 'CA' });
    await settled(checkout, 'completed');
    const topUp = await harness.topUp(checkout.id);
    assert.deepEqual([topUp.amountMicros, topUp.taxMicros], [10_000_000, 730_000]);
    const session = await harness.stripe.checkout.sessions.retrieve(topUp.sessionId ?? '');
    const customer = idOf(session.customer);
    assert.ok(customer !== undefined);
    assert.notEqual(customer, owner);
    const invoices = await harness.stripe.invoices.list({ customer });
    assert.deepEqual(
      invoices.data.map(({ id }) => id),
      [await invoiceOf(topUp)],
    );
    const kept = await harness.stripe.customers.retrieve(owner ?? '');
    assert.equal('address' in kept && kept.address?.state, 'NY');
    const refund = await requestRefund(harness.database, topUp.id, undefined);
    assert.equal(refund.kind, 'requested');
    await settled(topUp, 'refunded');
    assert.deepEqual(await notesOf(topUp), [1_073]);
  });

  it('credits the whole payment where there is no tax', async () => {
    const { payer, topUp } = await paid(20, 'OR');
    assert.equal((await payer.money()).balance, 20_000_000);
    assert.deepEqual([topUp.isTaxed, topUp.taxMicros], [true, 0]);
  });

  it('charges the tax to the saved card, at the address of the last checkout', async () => {
    const { payer } = await paid(20);
    const result = await harness.requestDirect(payer, 12.5);
    assert.ok(result.kind === 'completed', result.kind);
    assert.equal(result.topUp.taxMicros, 1_110_000);
    const [payment] = await harness.paymentsOf(result.topUp);
    assert.equal(payment?.amount, 1_361);
    assert.equal((await payer.money()).balance, 32_500_000);
    const refund = await requestRefund(harness.database, result.topUp.id, undefined);
    assert.equal(refund.kind, 'requested');
    await settled(result.topUp, 'refunded');
    assert.deepEqual(await refundsOf(result.topUp.paymentIntentId ?? ''), [1_361]);
    assert.deepEqual(await notesOf(result.topUp), [1_361]);
  });

  it('has one paid invoice of a payment by the saved card, though every answer was lost', async () => {
    const { payer } = await paid(20);
    for (const path of ['', '/in_']) {
      const fault = { method: 'POST', path: `/v1/invoices${path}`, kind: 'do_then_drop' };
      await harness.control('faults', { ...fault, times: path === '' ? 1 : 3 });
    }
    const result = await harness.requestDirect(payer, 12.5);
    assert.ok(result.kind === 'completed', result.kind);
    await until(() => harness.isQuiet(result.topUp));
    assert.deepEqual(await harness.faults(), []);
    const [invoice, ...more] = await invoicesOf(result.topUp);
    assert.deepEqual(more, []);
    assert.ok(invoice?.status === 'paid');
    assert.deepEqual([invoice.total_excluding_tax, invoice.total], [1_250, 1_361]);
    assert.equal(invoice.lines.data[0]?.taxes?.[0]?.amount, 111);
  });

  it('keeps its invoice when a restored database credits it again hours later', async () => {
    const { payer } = await paid(20);
    const result = await harness.requestDirect(payer, 12.5);
    assert.ok(result.kind === 'completed', result.kind);
    await until(async () => (await invoicesOf(result.topUp))[0]?.status === 'paid');
    await until(() => harness.isQuiet(result.topUp));
    await control(harness.simulator, 'idempotency-keys', undefined, 'DELETE');
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set invoice_id = null, completed_at = completed_at + interval '2 hours'
      where id = ${result.topUp.id}
    `);
    await reportReversal(harness.temporal, result.topUp);
    await until(async () => (await invoiceIdOf(result.topUp)) !== null);
    await until(() => harness.isQuiet(result.topUp));
    assert.equal((await invoicesOf(result.topUp)).length, 1);
  });

  it('is refunded while no invoice can be made, and has its documents made later', async () => {
    const { payer } = await paid(20);
    await refuseInvoices(403);
    await harness.control('webhooks', { mode: 'drop' });
    const result = await harness.requestDirect(payer, 12.5);
    assert.ok(result.kind === 'completed', result.kind);
    await requestRefund(harness.database, result.topUp.id, 10_000_000 as Micros);
    const intent = result.topUp.paymentIntentId ?? '';
    await until(async () => (await refundsOf(intent)).length === 1);
    await until(async () => (await harness.waitingNotices()) === 0);
    // A step in progress would make the documents once it is possible again.
    await worker.stop();
    await harness.reversals(result.topUp.id).terminate();
    await harness.forgetFaults();
    await harness.control('webhooks', { mode: 'deliver' });
    assert.equal(await noteMissingInvoices(harness.database, 3_600_000), 0);
    assert.equal(await noteMissingInvoices(harness.database, 0), 1);
    worker = await harness.startWorker();
    await until(async () => (await invoicesOf(result.topUp))[0]?.status === 'paid');
    await until(() => harness.isQuiet(result.topUp));
    assert.deepEqual(await notesOf(result.topUp), [1_088]);
    assert.equal(await noteMissingInvoices(harness.database, 0), 0);
  });

  it('does not stay stuck when Stripe refuses its invoice, which is tried again later', async () => {
    const { payer } = await paid(20);
    await refuseInvoices(400);
    const result = await harness.requestDirect(payer, 12.5);
    assert.ok(result.kind === 'completed', result.kind);
    const { topUp } = result;
    await until(() => harness.isQuiet(topUp));
    assert.match(await detailsOf(topUp), /invoice could not be made/);
    assert.equal(await invoiceIdOf(topUp), null);
    const refund = await requestRefund(harness.database, topUp.id, 10_000_000 as Micros);
    assert.equal(refund.kind, 'requested');
    await settled(topUp, 'partially_refunded');
    await harness.forgetFaults();
    assert.equal(await noteMissingInvoices(harness.database, 0), 1);
    await until(async () => (await invoiceIdOf(topUp)) !== null);
    await until(() => harness.isQuiet(topUp));
    assert.deepEqual(await notesOf(topUp), [1_088]);
    assert.doesNotMatch(await detailsOf(topUp), /could not/);
  });

  it('does not stay stuck when somebody changed its invoice, which operators are shown', async () => {
    const { payer } = await paid(20);
    await refuseInvoices(403, '/v1/invoices/');
    const result = await harness.requestDirect(payer, 12.5);
    assert.ok(result.kind === 'completed', result.kind);
    const { topUp } = result;
    const draft = await until(async () => (await invoicesOf(topUp))[0]);
    // A step in progress would add the right line once that is possible again.
    await worker.stop();
    await harness.forgetFaults();
    const lines = [{ amount: 500, description: 'Something else' }];
    await harness.stripe.invoices.addLines(draft.id, { lines });
    worker = await harness.startWorker();
    await until(() => harness.isQuiet(topUp));
    assert.match(await detailsOf(topUp), /amount of in.+13\.61 expected, .+5\.00 found/);
    assert.equal(await invoiceIdOf(topUp), null);
  });

  it('fails without an address for the tax, and takes nothing', async () => {
    const consumer = await harness.newConsumer();
    await harness.requestDirect(consumer, 1);
    await harness.saveCard(consumer, 'pm_card_visa');
    const result = await harness.requestDirect(consumer, 12.5);
    assert.ok(result.kind === 'failed');
    assert.equal(result.failure.code, 'tax_address_missing');
    assert.deepEqual(await harness.paymentsOf(result.topUp), []);
  });

  it('fails at once when its tax takes it beyond the maximum of a card, and takes nothing', async () => {
    const { payer } = await paid(20);
    const ceiling = 2_000_000_000_000 as Micros;
    await changeConsent(harness.database, payer.consumerId, {
      ceilingMicros: ceiling,
      givenBy: 'operator',
    });
    const result = await harness.requestDirect(payer, 999_999.99);
    assert.ok(result.kind === 'failed', result.kind);
    assert.equal(result.failure.code, 'invalid_amount');
    assert.match(result.failure.message, /\$999,999\.99/);
    assert.deepEqual(await harness.paymentsOf(result.topUp), []);
    await until(() => harness.isQuiet(result.topUp));
  });

  it('is refunded in parts to the cent, with a credit note for each', async () => {
    const { payer, topUp, intent } = await paid(20);
    for (const micros of [6_660_000, 6_660_000, 6_680_000]) {
      const result = await requestRefund(harness.database, topUp.id, micros as Micros);
      assert.equal(result.kind, 'requested');
    }
    await settled(topUp, 'refunded');
    assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 0 });
    assert.deepEqual(await refundsOf(intent), [725, 725, 728]);
    assert.deepEqual(await notesOf(topUp), [725, 725, 728]);
  });

  it('adds one credit note to a refund, though the answer was lost', async () => {
    const { topUp } = await paid(20);
    await harness.control('faults', {
      method: 'POST',
      path: '/v1/credit_notes',
      kind: 'do_then_drop',
    });
    await requestRefund(harness.database, topUp.id, 10_000_000 as Micros);
    await settled(topUp, 'partially_refunded');
    assert.deepEqual(await notesOf(topUp), [1_089]);
  });

  it('takes the exact share of refunds that were made at the processor', async () => {
    const { payer, topUp, intent } = await paid(20);
    await harness.stripe.refunds.create({ payment_intent: intent, amount: 1_000 });
    await settled(topUp, 'partially_refunded');
    // $20.00 x 1,000 / 2,178, rounded down to the micro-dollar.
    assert.equal((await payer.money()).balance, 20_000_000 - 9_182_736);
    await harness.stripe.refunds.create({ payment_intent: intent, amount: 1_178 });
    await settled(topUp, 'refunded');
    assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 0 });
    assert.deepEqual(await notesOf(topUp), [1_000, 1_178]);
  });

  it('is credited again in full when the refund fails', async () => {
    const { payer, topUp, intent } = await paid(20);
    await requestRefund(harness.database, topUp.id, undefined);
    await settled(topUp, 'refunded');
    const { data } = await harness.stripe.refunds.list({ payment_intent: intent });
    await harness.control(`refunds/${data[0]?.id}/fail`);
    await settled(topUp, 'completed');
    assert.equal((await payer.money()).balance, 20_000_000);
    assert.doesNotMatch(await detailsOf(topUp), /credit note/);

    await requestRefund(harness.database, topUp.id, undefined);
    await settled(topUp, 'refunded');
    assert.equal((await payer.money()).balance, 0);
    assert.deepEqual(await refundsOf(intent), [2_178, 2_178]);
    // The first note cannot be voided, so Stripe refuses another one, and an operator corrects it there.
    assert.deepEqual(await notesOf(topUp), [2_178]);
    assert.match(await detailsOf(topUp), /refused a credit note for .+re_/);
  });

  it('has the credit note that somebody made in the dashboard, and no other one', async () => {
    const { topUp, intent } = await paid(20);
    await harness.control('webhooks', { mode: 'drop' });
    const refund = await harness.stripe.refunds.create({ payment_intent: intent, amount: 500 });
    const refunds = [{ type: 'refund' as const, refund: refund.id, amount_refunded: 500 }];
    const invoice = await invoiceOf(topUp);
    await harness.stripe.creditNotes.create({ invoice, amount: 500, refunds });
    await harness.control('webhooks', { mode: 'deliver' });
    await reportReversal(harness.temporal, topUp);
    await settled(topUp, 'partially_refunded');
    assert.deepEqual(await notesOf(topUp), [500]);
  });

  it('is held without the tax by a dispute, a fraud warning or both, and never twice', async () => {
    const { payer, topUp, intent } = await paid(20);
    await harness.control('fraud-warnings', { payment_intent: intent });
    await settled(topUp, 'disputed');
    assert.deepEqual(await payer.money(), { balance: 0, held: 20_000_000, debt: 0 });
    await harness.control('disputes', { payment_intent: intent, amount: 2_178 });
    await until(async () => (await payer.money()).debt === 0 && (await disputesOf(topUp)) === 1);
    await settled(topUp, 'disputed');
    assert.deepEqual(await payer.money(), { balance: 0, held: 20_000_000, debt: 0 });
    const { data } = await harness.stripe.disputes.list({ payment_intent: intent });
    await harness.control(`disputes/${data[0]?.id}/close`, { status: 'lost' });
    await settled(topUp, 'charged_back');
    assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 0 });
  });

  it('is credited by reconciliation without any webhook, and differs in nothing', async () => {
    await harness.control('webhooks', { mode: 'drop' });
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 20);
    await harness.pay(topUp.sessionUrl);
    await harness.reconcile();
    await harness.statusBecomes(topUp, 'completed');
    const { paymentIntentId, taxMicros } = await harness.topUp(topUp.id);
    assert.equal(taxMicros, 1_780_000);
    await harness.stripe.refunds.create({ payment_intent: paymentIntentId ?? '', amount: 500 });
    await harness.reconcile();
    await harness.control('webhooks', { mode: 'deliver' });
    assert.equal((await harness.topUp(topUp.id)).status, 'partially_refunded');
    // The credit note is made after the reversal is recorded.
    await settled(topUp, 'partially_refunded');
    assert.deepEqual(await notesOf(topUp), [500]);
    assert.deepEqual(await listDifferences(harness.database), []);
  });

  async function paid(dollars: number, state = 'NY'): Promise<Paid> {
    const consumer: Consumer = await harness.newConsumer();
    const checkout = await harness.checkout(consumer, dollars);
    await harness.pay(checkout.sessionUrl, '4242424242424242', { save: true, state });
    await harness.statusBecomes(checkout, 'completed');
    const topUp = await harness.topUp(checkout.id);
    return {
      payer: payerOf(harness.database, consumer),
      topUp,
      intent: topUp.paymentIntentId ?? '',
    };
  }

  for (const method of ['checkout', 'direct'] as const) {
    it(`is credited though the database was restored to before its tax was decided: ${method}`, async () => {
      const { payer } = await paid(20);
      await harness.control('webhooks', { mode: 'drop' });
      const topUp = await paidAfterBackup(payer, method);
      await takeOverSince({ database: harness.database, stripe: harness.stripe }, () => {});
      await harness.control('webhooks', { mode: 'deliver' });
      const { status, taxMicros } = await harness.topUp(topUp.id);
      assert.deepEqual([status, taxMicros], ['completed', 1_110_000]);
      assert.equal((await payer.money()).balance, 32_500_000);
      assert.deepEqual(await listDifferences(harness.database), []);
      await refundedWithNote(topUp);
    });

    it(`has its documents though the restored database had lost it: ${method}`, async () => {
      const { payer } = await paid(20);
      await harness.control('webhooks', { mode: 'drop' });
      const topUp = await paidAfterBackup(payer, method);
      await harness.database.query(sql.typeAlias('nothing')`
        delete from farebox.top_ups where id = ${topUp.id}
      `);
      await takeOverSince({ database: harness.database, stripe: harness.stripe }, () => {});
      await harness.control('webhooks', { mode: 'deliver' });
      assert.equal((await harness.topUp(topUp.id)).status, 'completed');
      await refundedWithNote(topUp);
    });
  }

  async function refundedWithNote(topUp: TopUp): Promise<void> {
    await requestRefund(harness.database, topUp.id, undefined);
    await settled(topUp, 'refunded');
    assert.deepEqual(await notesOf(topUp), [1_361]);
  }

  /** Its row says that it was claimed, and nothing of what Stripe was asked for. */
  async function paidAfterBackup(payer: Payer, method: 'checkout' | 'direct'): Promise<TopUp> {
    const { database, stripe, config } = harness;
    const amountMicros = 12_500_000 as Micros;
    const admitted = await admitTopUp(database, { ...payer, method, amountMicros });
    assert.ok(admitted.kind === 'admitted', admitted.kind);
    const { id } = admitted.topUp;
    await claimTopUp(database, id);
    const planned = await planTax(database, id, true);
    const customer = (await findProcessorCustomer(database, payer.accountId)) ?? '';
    if (method === 'checkout') {
      const { url } = await createSession(stripe, planned, customer, config.consoleUrl);
      await harness.pay(url);
    } else {
      const tax = await calculateTax(stripe, customer, amountMicros, { code: undefined });
      assert.ok(tax);
      const intent = await createIntent(
        stripe,
        await recordTaxCalculation(database, id, tax),
        customer,
      );
      const [card] = await listCards(stripe, customer);
      await confirmIntent(stripe, intent.id, card?.id ?? '');
    }
    await database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set is_taxed = null, tax_micros = 0, tax_calculation_id = null,
        created_at = created_at - interval '1 hour'
      where id = ${id}
    `);
    return harness.topUp(id);
  }

  /** By default all writes; by the longer path, all but the first, which makes a draft. */
  async function refuseInvoices(status: number, path = '/v1/invoices'): Promise<void> {
    await harness.control('faults', { method: 'POST', path, kind: 'error', status, times: 1_000 });
  }

  /** The status is reached and nothing is in progress any more. */
  async function settled(topUp: Pick<TopUp, 'id'>, status: TopUp['status']): Promise<void> {
    await harness.statusBecomes(topUp, status);
    await until(() => harness.isQuiet(topUp));
    assert.equal((await harness.topUp(topUp.id)).status, status);
  }

  /** Cents. */
  async function refundsOf(intent: string): Promise<number[]> {
    const { data } = await harness.stripe.refunds.list({ payment_intent: intent });
    return sorted(data.map(({ amount }: Stripe.Refund) => amount));
  }

  /** Cents. */
  async function notesOf(topUp: TopUp): Promise<number[]> {
    const { data } = await harness.stripe.creditNotes.list({ invoice: await invoiceOf(topUp) });
    return sorted(data.map(({ total }) => total));
  }

  /** The invoices of payments by the saved card. */
  async function invoicesOf({ id }: Pick<TopUp, 'id'>): Promise<Stripe.Invoice[]> {
    const { data } = await harness.stripe.invoices.list({ limit: 100 });
    return data.filter(({ metadata }) => metadata?.['top_up_id'] === wireId('topUp', id));
  }

  async function invoiceOf(topUp: TopUp): Promise<string> {
    const { id, method } = topUp;
    if (method === 'direct') {
      const [made] = await invoicesOf(topUp);
      assert.ok(made, 'no invoice');
      return made.id;
    }
    const session = (await harness.topUp(id)).sessionId ?? '';
    const { invoice, client_reference_id } =
      await harness.stripe.checkout.sessions.retrieve(session);
    assert.equal(client_reference_id, wireId('topUp', id));
    assert.ok(typeof invoice === 'string');
    return invoice;
  }

  async function detailsOf(topUp: TopUp): Promise<string> {
    return JSON.stringify(await harness.reversals(topUp.id).query('__temporal_workflow_metadata'));
  }

  /** As our books have it. */
  function invoiceIdOf({ id }: TopUp): Promise<string | null> {
    return harness.database.oneFirst(sql.type(invoiceRow)`
      select invoice_id as "invoiceId" from farebox.top_ups where id = ${id}
    `);
  }

  function disputesOf({ id }: TopUp): Promise<number> {
    return harness.database
      .query(
        sql.typeAlias('nothing')`
          select from farebox.reversals where top_up_id = ${id} and kind = 'dispute'
        `,
      )
      .then(({ rowCount }) => rowCount);
  }
});
