/**
 * Controls for tests and demonstrations, under `/_simulator/`; JSON in and out, with the token in the header
 * X-Simulator-Token or as `token` in the URL. They do on command what Stripe, a bank or the network would do:
 *
 *   POST   /faults                   {method?, path, kind, times?} with kind error {status, code?, headers?}, delay {ms},
 *                                    drop, do_then_drop, do_then_error {status?}; see faults.ts
 *   GET, DELETE /faults              lists the queued ones, and how many requests are being delayed; removes them
 *   POST, DELETE /rate-limit         {per_second}: answers 429 to what is more; removes the limit
 *   POST   /webhooks                 {mode?: deliver | hold | drop, duplicate?: n, shuffle?: boolean}
 *   GET    /webhooks                 the settings and the owed webhooks
 *   POST   /events/:id/deliver       sends one event now, owed or not; answers the status that came back
 *   GET    /payments                 every succeeded payment, oldest first: what the books must agree with
 *   POST   /disputes                 {payment_intent, amount?, reason?, inquiry?: boolean, currency?} opens one
 *   POST   /disputes/:id/escalate    makes a dispute of an inquiry
 *   POST   /disputes/:id/close       {status: won | lost | warning_closed}; lost may be won later
 *   POST   /fraud-warnings           {payment_intent}: the bank suspects fraud
 *   POST   /reviews                  {payment_intent}: a rule of Radar's asks for a review
 *   POST   /reviews/:id/approve      a person approves the payment
 *   POST   /async/:session           {outcome: succeeded | failed} ends its bank debit
 *   POST   /refunds/:id/fail         fails a refund that had succeeded
 *   POST   /cards/:id/expire         has a saved card (pm_...) expire
 *   POST   /cards/:id/lose           has its bank decline a saved card permanently
 *   POST   /sessions/:id/expire-now  expires an open session, as its time would
 *   DELETE /idempotency-keys         forgets all idempotency keys, as Stripe does after a day
 *
 * Faults and webhook settings are kept in memory: a restart clears them, and what was held goes out.
 */
import type Stripe from 'stripe';
import { settleDebit } from '../hosted-page/checkout-payment.ts';
import { getSession } from '../resources/checkout-sessions.ts';
import type { Context } from '../context.ts';
import { closeDispute, escalateDispute, openDispute } from '../resources/disputes.ts';
import { warn } from '../resources/fraud-warnings.ts';
import { approveReview, openReview } from '../resources/reviews.ts';
import { noSuch, refused } from '../http/errors.ts';
import type { Fault, Faults } from './faults.ts';
import { expireCard, loseCard } from '../resources/payment-methods.ts';
import { failRefund } from '../resources/refunds.ts';
import { run, type Simulation } from '../simulation.ts';
import type { WebhookSettings } from '../webhooks.ts';

type Json = Readonly<Record<string, unknown>>;

type Control = (request: {
  readonly simulation: Simulation;
  readonly faults: Faults;
  readonly id: string;
  readonly body: Json;
}) => unknown;

const CONTROLS: Readonly<Record<string, Control>> = {
  'POST faults': ({ faults, body }) => {
    faults.add(faultOf(body));
    return { faults: faults.list() };
  },
  'GET faults': ({ faults }) => ({ faults: faults.list(), delayed: faults.delayed }),
  'DELETE faults': ({ faults }) => {
    faults.clear();
    return { faults: [] };
  },
  'POST rate-limit': ({ simulation, body }) => {
    simulation.rateLimit.perSecond = integer(body, 'per_second');
    return { per_second: simulation.rateLimit.perSecond };
  },
  'DELETE rate-limit': ({ simulation }) => {
    simulation.rateLimit.perSecond = undefined;
    return { per_second: null };
  },
  'POST webhooks': ({ simulation, body }) => {
    simulation.webhooks.configure(settingsOf(simulation.webhooks.settings, body));
    return webhookState(simulation);
  },
  'GET webhooks': ({ simulation }) => webhookState(simulation),
  'POST events/:id/deliver': async ({ simulation, id }) => {
    const event = simulation.store.find('event', id);
    if (!event) throw noSuch('event', id);
    return { status: (await simulation.webhooks.send(JSON.stringify(event))) ?? null };
  },
  'DELETE idempotency-keys': ({ simulation }) => {
    simulation.store.forgetAnswersBefore(Number.MAX_SAFE_INTEGER);
    return { forgotten: true };
  },
  'GET payments': ({ simulation }) => run(simulation, null, payments),
  'POST disputes': ({ simulation, body }) =>
    run(simulation, null, (context) =>
      openDispute(context, {
        paymentIntent: text(body, 'payment_intent'),
        amount: body['amount'] === undefined ? undefined : integer(body, 'amount'),
        reason: body['reason'] === undefined ? 'fraudulent' : text(body, 'reason'),
        isInquiry: body['inquiry'] === true,
        currency: body['currency'] === undefined ? undefined : text(body, 'currency'),
      }),
    ),
  'POST disputes/:id/escalate': ({ simulation, id }) =>
    run(simulation, null, (context) => escalateDispute(context, id)),
  'POST disputes/:id/close': ({ simulation, id, body }) =>
    run(simulation, null, (context) =>
      closeDispute(context, id, oneOf(body, 'status', ['won', 'lost', 'warning_closed'])),
    ),
  'POST fraud-warnings': ({ simulation, body }) =>
    run(simulation, null, (context) => warn(context, text(body, 'payment_intent'))),
  'POST reviews': ({ simulation, body }) =>
    run(simulation, null, (context) => openReview(context, text(body, 'payment_intent'))),
  'POST reviews/:id/approve': ({ simulation, id }) =>
    run(simulation, null, (context) => approveReview(context, id)),
  'POST async/:id': ({ simulation, id, body }) =>
    run(simulation, null, (context) => {
      const intent = context.store.follow('payment_intent', getSession(context, id).payment_intent);
      if (!intent) throw refused(`${id} has not been paid.`);
      settleDebit(context, intent, oneOf(body, 'outcome', ['succeeded', 'failed']));
      return getSession(context, id);
    }),
  'POST refunds/:id/fail': ({ simulation, id }) =>
    run(simulation, null, (context) => failRefund(context, id)),
  'POST cards/:id/expire': ({ simulation, id }) =>
    run(simulation, null, (context) => expireCard(context, id)),
  'POST cards/:id/lose': ({ simulation, id }) =>
    run(simulation, null, (context) => loseCard(context, id)),
  'POST sessions/:id/expire-now': ({ simulation, id }) =>
    run(simulation, null, (context) => {
      const session = getSession(context, id);
      if (session.status !== 'open') throw refused(`${id} has a status of ${session.status}.`);
      context.store.update({ ...session, expires_at: context.now }, context.now);
      return getSession(context, id);
    }),
};

/** `path` is what follows `/_simulator/`. */
export async function answerControl(
  simulation: Simulation,
  faults: Faults,
  method: string,
  path: string,
  body: Json,
): Promise<unknown> {
  const [noun, id = '', ...rest] = path.split('/');
  const name = [noun, ...(id === '' ? [] : [':id']), ...rest].join('/');
  const control = CONTROLS[`${method} ${name}`];
  if (!control) throw noSuch('control', `${method} ${path}`);
  return control({ simulation, faults, id, body });
}

function payments(context: Context): { payments: unknown[] } {
  const succeeded = context.store.all('payment_intent', { status: 'succeeded' });
  return { payments: succeeded.map((intent) => paymentOf(context, intent)) };
}

function paymentOf({ store }: Context, intent: Stripe.PaymentIntent) {
  const charge = store.follow('charge', intent.latest_charge);
  const session = store.all('checkout.session', { payment_intent: intent.id })[0];
  return {
    payment_intent: intent.id,
    charge: charge?.id ?? null,
    checkout_session: session?.id ?? null,
    client_reference_id: session?.client_reference_id ?? null,
    customer: intent.customer,
    amount: intent.amount_received,
    amount_refunded: charge?.amount_refunded ?? 0,
    currency: intent.currency,
    disputed: charge?.disputed ?? false,
    metadata: intent.metadata,
    created: intent.created,
  };
}

function webhookState({ store, webhooks }: Simulation) {
  const owed = store.owedBy(Number.MAX_SAFE_INTEGER, 1_000).map((webhook) => ({
    event: webhook.eventId,
    type: webhook.type,
    attempts: webhook.attempts,
    next_at: new Date(webhook.nextAtMs).toISOString(),
  }));
  return { ...webhooks.settings, owed };
}

function settingsOf(before: WebhookSettings, body: Json): WebhookSettings {
  const { mode, duplicate, shuffle } = { ...before, ...body };
  if (typeof shuffle !== 'boolean') throw refused('shuffle must be true or false');
  return {
    mode: oneOf({ mode }, 'mode', ['deliver', 'hold', 'drop']),
    duplicate: integer({ duplicate }, 'duplicate'),
    shuffle,
  };
}

function faultOf(body: Json): Fault {
  const where = {
    method: body['method'] === undefined ? '*' : text(body, 'method'),
    path: text(body, 'path'),
    times: body['times'] === undefined ? 1 : integer(body, 'times'),
  };
  const kind = oneOf(body, 'kind', ['error', 'delay', 'drop', 'do_then_drop', 'do_then_error']);
  if (kind === 'error') {
    const headers = (body['headers'] ?? {}) as Record<string, string>;
    const code = body['code'] === undefined ? undefined : text(body, 'code');
    return { ...where, kind, status: integer(body, 'status'), code, headers };
  }
  if (kind === 'delay') return { ...where, kind, ms: integer(body, 'ms') };
  if (kind === 'do_then_error') {
    const status = body['status'] === undefined ? 500 : integer(body, 'status');
    return { ...where, kind, status };
  }
  return { ...where, kind };
}

function text(body: Json, name: string): string {
  const value = body[name];
  if (typeof value !== 'string' || value === '') throw refused(`${name} must be a string`);
  return value;
}

function integer(body: Json, name: string): number {
  const value = body[name];
  if (!Number.isInteger(value) || Number(value) < 1) {
    throw refused(`${name} must be a positive integer`);
  }
  return Number(value);
}

function oneOf<T extends string>(body: Json, name: string, allowed: readonly T[]): T {
  const value = text(body, name);
  if (!(allowed as readonly string[]).includes(value)) {
    throw refused(`${name} must be one of ${allowed.join(', ')}`);
  }
  return value as T;
}
