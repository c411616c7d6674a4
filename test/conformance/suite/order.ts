/** What the suite pays for. */
import { randomUUIDv7 } from 'node:crypto';
import { Stripe } from 'stripe';
import assert from 'node:assert/strict';
import { asMicros } from '../../../src/domain/money.ts';
import * as calls from '../../../src/stripe/calls.ts';
import type { CheckedClient } from '../checked-client.ts';

export const CENTS = 2_500;

type Wanted = Pick<calls.Payable, 'sessionExpiresAt' | 'savesCard'>;

/** A top-up of $25.00, as our row has it. */
export function newOrder({ sessionExpiresAt = null, savesCard = false }: Partial<Wanted> = {}) {
  return {
    id: randomUUIDv7(),
    accountId: randomUUIDv7(),
    amountMicros: asMicros(25_000_000),
    sessionExpiresAt,
    savesCard,
    isTaxed: false,
    taxMicros: asMicros(0),
    taxCalculationId: null as string | null,
  };
}

/** A customer with this card saved: one of Stripe's ids of test cards. */
export async function customerWith({ stripe }: CheckedClient, testCard: string) {
  const customer = await calls.createCustomer(stripe, randomUUIDv7());
  const card = await stripe.paymentMethods.attach(testCard, { customer });
  return { customer, card: card.id };
}

/** A direct top-up of a customer with this card, as far as it gets. */
export async function payWith(client: CheckedClient, testCard: string) {
  const { customer, card } = await customerWith(client, testCard);
  const order = newOrder();
  const { id } = await calls.createIntent(client.stripe, order, customer);
  const intent = await calls.confirmIntent(client.stripe, id, card);
  return { order, customer, card, intent };
}

export async function errorOf(call: Promise<unknown>): Promise<Stripe.errors.StripeError> {
  const error = await call.then(
    () => assert.fail('Stripe did not refuse'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof Stripe.errors.StripeError, String(error));
  return error;
}
