/** Customers and their cards. */
import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import type { Stripe } from 'stripe';
import { wireId } from '../../../src/domain/ids.ts';
import * as calls from '../../../src/stripe/calls.ts';
import { findCard, listCards, removeCard, shownCard } from '../../../src/stripe/cards.ts';
import { isCustomerMissing } from '../../../src/stripe/errors.ts';
import { CLOCK_SKEW_SECONDS, type Target } from '../target.ts';
import { customerWith, errorOf, newOrder } from './order.ts';

export function describeCustomers(get: () => Target): void {
  describe('customers', () => {
    it('name their account, and are made once for a key', async () => {
      const { stripe, startedAt } = get();
      const accountId = randomUUIDv7();
      const id = await calls.createCustomer(stripe, accountId);
      assert.match(id, /^cus_/);
      assert.equal(await calls.createCustomer(stripe, accountId), id);
      const created = { gte: startedAt - CLOCK_SKEW_SECONDS };
      const found = [];
      for await (const customer of stripe.customers.list({ created, limit: 100 })) {
        if (customer.metadata['account_id'] === wireId('account', accountId))
          found.push(customer.id);
      }
      assert.deepEqual(found, [id]);
    });

    it('change by an update, and metadata with an empty value disappear', async () => {
      const { stripe } = get();
      const { id } = await stripe.customers.create({ metadata: { a: '1', b: '2' } });
      const customer = await stripe.customers.update(id, { name: 'Ada', metadata: { a: '' } });
      assert.equal(customer.name, 'Ada');
      assert.equal(customer.email, null);
      const { email } = await stripe.customers.update(id, { email: 'ada@example.com' });
      assert.equal(email, 'ada@example.com');
      assert.deepEqual(customer.metadata, { b: '2' });
      assert.equal(customer.livemode, false);
    });

    it('keep a saved card, and show the newest first', async () => {
      const { stripe } = get();
      const { customer, card } = await customerWith(get(), 'pm_card_mastercard');
      const newer = await calls.saveTestCard(stripe, randomUUIDv7(), customer);
      assert.notEqual(newer, card);
      const cards = await listCards(stripe, customer);
      assert.deepEqual(
        cards.map(({ id }) => id),
        [newer, card],
      );
      const { brand, lastFour, expiresOn } = shownCard(cards[0] as Stripe.PaymentMethod);
      assert.deepEqual([brand, lastFour], ['visa', '4242']);
      assert.match(expiresOn, /^20\d\d-\d\d$/);
      assert.equal(await findCard(stripe, customer, newer), 'saved');
      const both = await stripe.customers.listPaymentMethods(customer, { type: 'card' });
      assert.deepEqual(
        both.data.map(({ id }) => id),
        [newer, card],
      );
      await removeCard(stripe, newer);
      assert.equal((await stripe.paymentMethods.retrieve(newer)).customer, null);
      assert.equal(await findCard(stripe, customer, newer), 'removed');
      assert.equal(await findCard(stripe, customer, 'pm_none'), null);
      assert.equal((await listCards(stripe, customer)).length, 1);
    });

    it('cannot save a card that its bank declines', async () => {
      const { stripe } = get();
      const customer = await calls.createCustomer(stripe, randomUUIDv7());
      const error = await errorOf(
        stripe.paymentMethods.attach('pm_card_chargeDeclined', { customer }),
      );
      assert.equal(error.statusCode, 402);
      assert.equal(error.code, 'card_declined');
      assert.equal(error.decline_code, 'generic_decline');
    });

    it('are unknown once deleted: as a parameter, not as an id', async () => {
      const { stripe } = get();
      const { customer } = await customerWith(get(), 'pm_card_visa');
      assert.equal((await stripe.customers.del(customer)).deleted, true);
      const shown = await stripe.customers.retrieve(customer);
      assert.deepEqual({ ...shown }, { id: customer, object: 'customer', deleted: true });
      const error = await errorOf(calls.createIntent(stripe, newOrder(), customer));
      assert.ok(isCustomerMissing(error), String(error));
      assert.ok(isCustomerMissing(await errorOf(listCards(stripe, customer))));
    });
  });
}
