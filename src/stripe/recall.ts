/**
 * Finds a top-up's payment at Stripe when its row names none. A database that was restored from a backup has such rows:
 * their session or payment intent was made, and possibly paid, after the restored moment. Stripe forgets idempotency
 * keys after a day, so a second request would take the money a second time. Reads lists, which show everything at once;
 * Stripe's search is minutes behind.
 */
import type { Stripe } from 'stripe';
import { HOUR_MS } from '../domain/durations.ts';
import { wireId } from '../domain/ids.ts';
import { microsOfCents } from '../domain/money.ts';
import type { Database } from '../store/database.ts';
import { adoptCustomer, findProcessorCustomer } from '../store/top-ups/processor-customers.ts';
import {
  planTax,
  recordPaymentIntent,
  recordSession,
  recordTaxCalculation,
} from '../store/top-ups/plan-payment.ts';
import type { TopUp } from '../store/top-ups/top-ups.ts';

/** A step records an id within seconds. Until Stripe forgets keys, after a day, a repeated request finds it too. */
const RECALLED_AFTER_MS = 600_000;
/** Stripe's clock may be behind ours, and a customer may be older than the first top-up that was restored. */
const SKEW_MS = HOUR_MS;
/**
 * A checkout of a link has no customer by which its session could be found, so the sessions of all accounts
 * are read. The payer, to whom the page said that it cannot be opened, left it long before: none is opened
 * later.
 */
const LINK_OPENED_WITHIN_MS = 15 * 60_000;

export function isTooLateToOpen({ byLink, ageMs }: TopUp): boolean {
  return byLink && ageMs > LINK_OPENED_WITHIN_MS;
}

/** The row, once it names the session or payment intent that Stripe has for it. */
export async function recall(
  { database, stripe }: { readonly database: Database; readonly stripe: Stripe },
  topUp: TopUp,
): Promise<TopUp> {
  const { id, sessionId, paymentIntentId, method, isClaimed, ageMs } = topUp;
  const isNamed = sessionId !== null || paymentIntentId !== null;
  if (isNamed || !isClaimed || ageMs < RECALLED_AFTER_MS) return topUp;
  const madeMs = Date.parse(topUp.createdAt);
  const created = { gte: Math.floor((madeMs - SKEW_MS) / 1_000) };
  if (topUp.byLink) {
    const lte = Math.floor((madeMs + LINK_OPENED_WITHIN_MS + SKEW_MS) / 1_000);
    const which = { created: { ...created, lte }, limit: 100 };
    const session = await bestOf(stripe.checkout.sessions.list(which), id, SESSIONS);
    return session ? recordFoundSession(database, id, session) : topUp;
  }
  const customer = await customerOf(database, stripe, topUp.accountId, created);
  if (customer === null) return topUp;
  const which = { customer, created, limit: 100 };
  if (method === 'checkout') {
    const session = await bestOf(stripe.checkout.sessions.list(which), id, SESSIONS);
    return session ? recordFoundSession(database, id, session) : topUp;
  }
  const intent = await bestOf(stripe.paymentIntents.list(which), id, INTENTS);
  return intent ? recordFoundIntent(database, id, intent) : topUp;
}

/** With whether it is taxed, if the row had not decided that at the restored moment. */
export async function recordFoundSession(
  database: Database,
  topUpId: string,
  session: Stripe.Checkout.Session,
): Promise<TopUp> {
  await planTax(database, topUpId, session.automatic_tax.enabled);
  return recordSession(database, topUpId, session);
}

/** With the tax that it was made with. */
async function recordFoundIntent(
  database: Database,
  topUpId: string,
  { id, metadata, hooks }: Stripe.PaymentIntent,
): Promise<TopUp> {
  const taxCents = metadata['tax_cents'];
  await planTax(database, topUpId, taxCents !== undefined);
  const calculationId = hooks?.inputs?.tax?.calculation;
  if (taxCents !== undefined && calculationId !== undefined) {
    const micros = microsOfCents(Number(taxCents));
    await recordTaxCalculation(database, topUpId, { calculationId, micros });
  }
  return recordPaymentIntent(database, topUpId, id);
}

/** The account's customer. Null: Stripe has none that was made since, so nothing was ever asked of it. */
async function customerOf(
  database: Database,
  stripe: Stripe,
  accountId: string,
  created: Stripe.RangeQueryParam,
): Promise<string | null> {
  const known = await findProcessorCustomer(database, accountId);
  if (known !== null) return known;
  for await (const customer of stripe.customers.list({ created, limit: 100 })) {
    if (customer.metadata['account_id'] !== wireId('account', accountId)) continue;
    await adoptCustomer(database, accountId, customer.id);
    return customer.id;
  }
  return null;
}

/** Paid before payable, and payable before expired. */
const SESSIONS: readonly (string | null)[] = ['complete', 'open', 'expired'];
const INTENTS: readonly (string | null)[] = [
  'succeeded',
  'processing',
  'requires_action',
  'requires_confirmation',
  'requires_payment_method',
  'canceled',
];

interface Named {
  readonly status: string | null;
  readonly metadata: Stripe.Metadata | null;
}

/** Among the objects that name the top-up, the one whose status comes first in `order`. */
async function bestOf<T extends Named>(
  list: AsyncIterable<T>,
  topUpId: string,
  order: readonly (string | null)[],
): Promise<T | undefined> {
  let best: T | undefined;
  for await (const object of list) {
    if (object.metadata?.['top_up_id'] !== wireId('topUp', topUpId)) continue;
    if (!best || order.indexOf(object.status) < order.indexOf(best.status)) best = object;
  }
  return best;
}
