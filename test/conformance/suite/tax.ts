/**
 * Tax: on the page of a checkout, for a payment without a page, and back with a refund. Stripe Tax must be on
 * there.
 */
import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { asMicros } from '../../../src/domain/money.ts';
import * as calls from '../../../src/stripe/calls.ts';
import { makeRefund } from '../../../src/stripe/reversals.ts';
import { addCreditNote, makeInvoice } from '../../../src/stripe/invoices.ts';
import { calculateTax } from '../../../src/stripe/tax.ts';
import { listCards } from '../../../src/stripe/cards.ts';
import { idOf, verdictOfIntent, verdictOfSession } from '../../../src/stripe/verdict.ts';
import type { Target } from '../target.ts';
import { newOrder } from './order.ts';

const MINUTES_MAX = 10;
const NO_CODE = { code: undefined };
const IN_NEW_YORK = {
  country: 'US',
  state: 'NY',
  city: 'New York',
  postal_code: '10001',
  line1: '350 5th Ave',
};

export function describeTax(get: () => Target): void {
  describe('tax', () => {
    it('is unknown without an address', async () => {
      const { stripe } = get();
      const customer = await calls.createCustomer(stripe, randomUUIDv7());
      assert.equal(await calculateTax(stripe, customer, asMicros(25_000_000), NO_CODE), undefined);
    });

    it('is added to a payment by the saved card, with an invoice and a credit note', async () => {
      const { stripe } = get();
      const account = randomUUIDv7();
      const customer = await calls.createCustomer(stripe, account);
      await stripe.customers.update(customer, { address: IN_NEW_YORK });
      const card = await calls.saveTestCard(stripe, account, customer);
      const tax = await calculateTax(stripe, customer, newOrder().amountMicros, NO_CODE);
      assert.ok(tax && tax.micros > 0, 'it needs a registration for tax in New York');
      const order = {
        ...newOrder(),
        isTaxed: true,
        taxMicros: tax.micros,
        taxCalculationId: tax.calculationId,
      };
      const intent = await calls.createIntent(stripe, order, customer);
      const verdict = verdictOfIntent(await calls.confirmIntent(stripe, intent.id, card), order);
      assert.ok(verdict.kind === 'paid');

      const payment = {
        ...order,
        paymentIntentId: intent.id,
        calculationId: tax.calculationId,
        createdAt: new Date().toISOString(),
      };
      const invoiceId = await makeInvoice(stripe, payment);
      assert.ok(invoiceId !== undefined);
      assert.equal(await makeInvoice(stripe, payment), invoiceId);
      const { data } = await stripe.invoices.list({ customer });
      const [invoice, ...more] = data;
      assert.deepEqual(more, []);
      assert.equal(invoice?.status, 'paid');
      assert.equal(invoice.total, intent.amount);
      assert.equal(invoice.amount_remaining, 0);

      const refund = { id: randomUUIDv7(), grossMicros: asMicros(1_000_000) };
      const made = await makeRefund(stripe, intent.id, refund);
      assert.ok(made.kind === 'made');
      const credited = { processorId: made.reported.processorId, grossMicros: refund.grossMicros };
      assert.match(await addCreditNote(stripe, invoiceId, credited), /^cn_/);
    });

    it('is added to a checkout without a customer, and a customer is created for the invoice (on the hosted page)', async function () {
      const { stripe, pay } = get();
      if (!pay) return this.skip();
      this.timeout(MINUTES_MAX * 60_000);
      const order = { ...newOrder(), isTaxed: true };
      const { id, url } = await calls.createSession(stripe, order, null, 'https://example.com');
      await pay(url, '4242424242424242');
      const session = await calls.readSession(stripe, id);
      const verdict = verdictOfSession(session, order);
      assert.ok(verdict.kind === 'paid' && verdict.invoiceId !== undefined);
      const customer = idOf(session.customer);
      assert.ok(customer !== undefined);
      assert.deepEqual(await listCards(stripe, customer), []);
      await stripe.customers.del(customer);
    });

    it('is added to a checkout, and to a direct payment afterwards (on the hosted page)', async function () {
      const { stripe, pay } = get();
      if (!pay) return this.skip();
      this.timeout(MINUTES_MAX * 60_000);
      const order = { ...newOrder(), isTaxed: true };
      const customer = await calls.createCustomer(stripe, randomUUIDv7());
      const { id, url } = await calls.createSession(stripe, order, customer, 'https://example.com');
      await pay(url, '4242424242424242');
      const session = await calls.readSession(stripe, id);
      const verdict = verdictOfSession(session, order);
      assert.ok(verdict.kind === 'paid' && verdict.invoiceId !== undefined);
      const { paymentIntentId, paidMicros, taxMicros, invoiceId } = verdict;
      assert.equal(paidMicros, order.amountMicros + taxMicros);

      const refund = { id: randomUUIDv7(), grossMicros: asMicros(1_000_000) };
      const made = await makeRefund(stripe, paymentIntentId, refund);
      assert.ok(made.kind === 'made');
      const { processorId } = made.reported;
      const credited = { processorId, grossMicros: refund.grossMicros };
      const note = await addCreditNote(stripe, invoiceId, credited);
      assert.equal(await addCreditNote(stripe, invoiceId, credited), note);

      const tax = await calculateTax(stripe, customer, order.amountMicros, NO_CODE);
      assert.equal(tax?.micros, taxMicros);
      const direct = {
        ...newOrder(),
        isTaxed: true,
        taxMicros,
        taxCalculationId: tax.calculationId,
      };
      const intent = await calls.createIntent(stripe, direct, customer);
      assert.equal(intent.hooks?.inputs?.tax?.calculation, tax.calculationId);
      await calls.cancelIntent(stripe, intent.id);
    });
  });
}
