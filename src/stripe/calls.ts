/**
 * Our calls to Stripe. Each POST sends an idempotency key made from our row's id, and parameters from that row only, so
 * that a call whose response was lost can be repeated exactly. No retries here but of dead connections:
 * Temporal makes them.
 */
import { Stripe } from 'stripe';
import type { Config } from '../config.ts';
import { CONSENT_TERMS } from '../domain/consent-terms.ts';
import { wireId } from '../domain/ids.ts';
import { centsOf, type Micros } from '../domain/money.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { keptConnections } from './connections.ts';
import { taxingOf } from './tax.ts';
import { tracedHttpClient } from './traced-http-client.ts';

export interface Payable {
  readonly id: string;
  readonly accountId: string;
  readonly amountMicros: Micros;
  /** When its checkout expires, in whole seconds; null for the processor's default. */
  readonly sessionExpiresAt: string | null;
  /** Its checkout saves the card, to be charged without its owner. */
  readonly savesCard: boolean;
  /** Whether the payer pays tax on top of the amount. */
  readonly isTaxed: boolean | null;
  /** Direct top-ups: the tax, as Stripe calculated it. */
  readonly taxMicros: Micros;
  readonly taxCalculationId: string | null;
}

/** The version whose objects this code was written for. A package for another one does not compile. */
export const API_VERSION = '2026-10-28.endive';

/** What is bought, on pages, in mails and in the dashboard. */
export const DESCRIPTION = 'Farebox balance';

/** Stripe's own test card; exists with test keys only. */
const TEST_CARD = 'pm_card_visa';

interface StripeOptions {
  /** For callers that Temporal does not retry. */
  readonly maxNetworkRetries?: number;
  /** In a process that traces. */
  readonly tracing?: Tracing | undefined;
}

export function createStripe(
  config: Config['stripe'],
  { maxNetworkRetries = 0, tracing }: StripeOptions = {},
): Stripe {
  const { secretKey, apiBase, timeoutMs } = config;
  const protocol = apiBase?.protocol === 'http:' ? 'http' : 'https';
  const httpClient = Stripe.createNodeHttpClient(keptConnections(protocol));
  return new Stripe(secretKey, {
    apiVersion: API_VERSION,
    ...(apiBase && {
      protocol,
      host: apiBase.hostname,
      port: apiBase.port || (apiBase.protocol === 'http:' ? 80 : 443),
    }),
    timeout: timeoutMs,
    maxNetworkRetries,
    httpClient: tracing ? tracedHttpClient(httpClient, tracing) : httpClient,
    telemetry: false,
  });
}

/** `missingId` is an earlier customer that Stripe does not know: its key would return it again. */
export async function createCustomer(
  stripe: Stripe,
  accountId: string,
  missingId?: string,
): Promise<string> {
  const account = wireId('account', accountId);
  const key = missingId === undefined ? `${account}/customer` : `${account}/customer/${missingId}`;
  const customer = await keyed(key, (options) =>
    stripe.customers.create({ metadata: { account_id: account } }, options),
  );
  return customer.id;
}

export async function saveTestCard(
  stripe: Stripe,
  accountId: string,
  customerId: string,
): Promise<string> {
  const card = await keyed(`${wireId('account', accountId)}/test-card`, (options) =>
    stripe.paymentMethods.attach(TEST_CARD, { customer: customerId }, options),
  );
  return card.id;
}

/**
 * Creates a hosted checkout page. It offers to save the card for the next checkout or, when the owner asked
 * for that, says that it is saved for top-ups without the owner, under which terms, and sets it up for them.
 * A different expiry is a different session, so it gets a different key.
 *
 * Without a customer, the page shows, uses and saves nothing of the account: cards, name, address. Its payer
 * may be anyone.
 */
export async function createSession(
  stripe: Stripe,
  topUp: Payable,
  customerId: string | null,
  consoleUrl: string,
  taxCode?: string,
): Promise<{ readonly id: string; readonly url: string }> {
  const id = wireId('topUp', topUp.id);
  const expiresAt = topUp.sessionExpiresAt && Date.parse(topUp.sessionExpiresAt) / 1_000;
  const metadata = {
    top_up_id: id,
    // After a restore, the customer says whose a payment is; without one, this does.
    ...(customerId === null && { account_id: wireId('account', topUp.accountId) }),
  };
  const params: Stripe.Checkout.SessionCreateParams = {
    mode: 'payment',
    ...(customerId !== null && { customer: customerId }),
    client_reference_id: id,
    metadata,
    payment_intent_data: { metadata, description: DESCRIPTION },
    // The page, the payment and its refunds are in dollars, even if the dashboard turns this on.
    adaptive_pricing: { enabled: false },
    ...(customerId !== null && savingOf(topUp)),
    ...(expiresAt && { expires_at: expiresAt }),
    ...(topUp.isTaxed && taxingOf(customerId)),
    line_items: [
      {
        quantity: 1,
        price_data: {
          currency: 'usd',
          unit_amount: centsOf(topUp.amountMicros),
          product_data: {
            name: DESCRIPTION,
            ...(topUp.isTaxed && taxCode !== undefined && { tax_code: taxCode }),
          },
          ...(topUp.isTaxed && { tax_behavior: 'exclusive' as const }),
        },
      },
    ],
    success_url: `${consoleUrl}/top-up?id=${id}&result=paid`,
    cancel_url: `${consoleUrl}/top-up?id=${id}&result=canceled`,
  };
  const session = await keyed(`${id}/session${expiresAt ? `/${expiresAt}` : ''}`, (options) =>
    stripe.checkout.sessions.create(params, options),
  );
  if (session.url === null) throw new Error(`${session.id} came without a URL`);
  return { id: session.id, url: session.url };
}

function savingOf({ savesCard }: Payable): Partial<Stripe.Checkout.SessionCreateParams> {
  if (!savesCard) return { saved_payment_method_options: { payment_method_save: 'enabled' } };
  return {
    payment_method_options: { card: { setup_future_usage: 'off_session' } },
    custom_text: { submit: { message: CONSENT_TERMS.text } },
  };
}

/** Expands the payment intent and charge, which show the outcome of a delayed payment and later refunds or disputes. */
export async function readSession(
  stripe: Stripe,
  sessionId: string,
): Promise<Stripe.Checkout.Session> {
  return stripe.checkout.sessions.retrieve(sessionId, { expand: ['payment_intent.latest_charge'] });
}

/** Expires the session, unless it was paid or has already expired. The caller must read its new state. */
export async function expireSession(stripe: Stripe, sessionId: string): Promise<void> {
  await unlessTooLate(stripe.checkout.sessions.expire(sessionId));
}

/** Takes no money: an intent is confirmed only once its id is stored. */
export async function createIntent(
  stripe: Stripe,
  topUp: Payable,
  customerId: string,
): Promise<Stripe.PaymentIntent> {
  const id = wireId('topUp', topUp.id);
  const params: Stripe.PaymentIntentCreateParams = {
    amount: centsOf(topUp.amountMicros) + centsOf(topUp.taxMicros),
    currency: 'usd',
    customer: customerId,
    allowed_payment_method_types: ['card'],
    description: DESCRIPTION,
    metadata: { top_up_id: id, ...(topUp.isTaxed && { tax_cents: centsOf(topUp.taxMicros) }) },
    // Stripe reports the tax when the intent is paid, and takes it back when it is refunded.
    ...(topUp.taxCalculationId !== null && {
      hooks: { inputs: { tax: { calculation: topUp.taxCalculationId } } },
    }),
  };
  return keyed(`${id}/intent`, (options) => stripe.paymentIntents.create(params, options));
}

export async function readIntent(stripe: Stripe, intentId: string): Promise<Stripe.PaymentIntent> {
  return stripe.paymentIntents.retrieve(intentId, { expand: ['latest_charge'] });
}

/**
 * Confirms the payment off session, as one that the cardholder agreed to beforehand and that follows no schedule. A
 * decline is not an error: the returned intent shows it.
 */
export async function confirmIntent(
  stripe: Stripe,
  intentId: string,
  cardId: string,
): Promise<Stripe.PaymentIntent> {
  try {
    return await keyed(`${intentId}/confirm/${cardId}`, (options) =>
      stripe.paymentIntents.confirm(
        intentId,
        {
          payment_method: cardId,
          off_session: true,
          payment_method_options: { card: { stored_credential_usage: 'unscheduled' } },
        },
        options,
      ),
    );
  } catch (error) {
    if (!(error instanceof Stripe.errors.StripeCardError)) throw error;
    return readIntent(stripe, intentId);
  }
}

/** Cancels the intent, unless it was paid or already canceled. The caller must read its new state. */
export async function cancelIntent(stripe: Stripe, intentId: string): Promise<void> {
  await unlessTooLate(stripe.paymentIntents.cancel(intentId));
}

/**
 * Makes a POST that takes effect once per key. Stripe stores even a 500 under the key and replays it for a day, and
 * refuses the key with different parameters (from a newer release, or another CONSOLE_URL). After such a
 * response the next key is used. No call here needs more protection: a second customer, session or intent
 * stays unused, and an intent takes its money once.
 */
async function keyed<T>(
  key: string,
  call: (options: { readonly idempotencyKey: string }) => Promise<T>,
): Promise<T> {
  for (let round = 1; ; round += 1) {
    try {
      return await call({ idempotencyKey: round === 1 ? key : `${key}/${round}` });
    } catch (error) {
      if (round === KEYS_MAX || !isKeySpent(error)) throw error;
    }
  }
}

const KEYS_MAX = 5;

function isKeySpent(error: unknown): boolean {
  if (!(error instanceof Stripe.errors.StripeError)) return false;
  const { statusCode = 0, headers } = error;
  const isKept = statusCode >= 500 && headers?.['idempotent-replayed'] === 'true';
  // A 409 means that the same request is in progress, so the key is not spent.
  return isKept || (error instanceof Stripe.errors.StripeIdempotencyError && statusCode === 400);
}

async function unlessTooLate(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof Stripe.errors.StripeInvalidRequestError)) throw error;
  }
}
