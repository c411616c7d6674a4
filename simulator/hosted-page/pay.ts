/**
 * The bank's page is at `/pay/<payment intent>`. The hosted page over HTTP, at `/pay/<session>`: GET shows
 * it; POST (form fields `card` and optional `save`, or `saved`) pays. The payment and its webhooks are
 * committed before it answers. A client that accepts HTML is redirected to the success URL; any other client
 * gets JSON, because a redirect would not help it.
 */
import type Stripe from 'stripe';
import type { Answer } from '../http/answers.ts';
import { ApiError } from '../http/errors.ts';
import { addTax, getSession, notesOfSession } from '../resources/checkout-sessions.ts';
import { offeredCards, paySession, type PaymentForm } from './checkout-payment.ts';
import { finishAuthentication, waitingIntent } from './authentication.ts';
import {
  authenticationPage,
  messagePage,
  PAGE_HEADERS,
  sessionPage,
  successUrl,
  type PageView,
} from './page.ts';
import { addressOf, addressOfCustomer } from '../resources/tax.ts';
import { run, type Simulation } from '../simulation.ts';

export interface PageRequest {
  readonly method: string;
  readonly sessionId: string;
  readonly body: Buffer;
  readonly contentType: string;
  readonly accept: string;
}

export async function answerPage(simulation: Simulation, request: PageRequest): Promise<Answer> {
  try {
    if (request.sessionId.startsWith('pi_')) return await authenticate(simulation, request);
    if (request.method === 'GET') return show(simulation, request.sessionId);
    if (request.method === 'POST') return pay(simulation, request, await fieldsOf(request));
    return page(405, messagePage('Not here', 'This page takes GET and POST.'));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return page(error.status, messagePage('Not found', 'There is no such payment page.'));
  }
}

function show(simulation: Simulation, id: string): Answer {
  return run(simulation, null, (context) => {
    const session = getSession(context, id);
    const address = addressOfCustomer(context, session.customer) ?? NEW_YORK;
    priceAt(session, address);
    const cards = offeredCards(context, session);
    return page(200, sessionPage(session, { ...notesOfSession(context, id), address, cards }));
  });
}

const NEW_YORK = addressOf('US', 'NY');

/** In the answer only: the payment stores it. */
function priceAt(session: Stripe.Checkout.Session, address: Stripe.Address): void {
  if (session.status === 'open' && session.automatic_tax.enabled) addTax(session, address);
}

function pay(simulation: Simulation, request: PageRequest, fields: Fields): Answer {
  const asHtml = request.accept.includes('text/html');
  return run(simulation, null, (context) => {
    const { address, shown } = fields;
    const asked = getSession(context, request.sessionId);
    const cards = offeredCards(context, asked);
    const view: PageView = { ...notesOfSession(context, asked.id), address, cards };
    priceAt(asked, address);
    if (shown !== undefined && asked.status === 'open' && asked.amount_total !== shown) {
      const problem = 'The tax at this address changes the total. Please check it, and pay again.';
      return page(200, sessionPage(asked, { ...view, problem }));
    }
    const result = paySession(context, request.sessionId, fields);
    const { session } = result;
    const { id, status, payment_status } = session;
    if (result.kind === 'declined') {
      const { code, declineCode, message } = result.decline;
      return asHtml
        ? page(402, sessionPage(session, { ...view, problem: message }))
        : json(402, { error: { type: 'card_error', code, decline_code: declineCode, message } });
    }
    if (status === 'expired') {
      return asHtml
        ? page(410, sessionPage(session, view))
        : json(410, { id, status, payment_status });
    }
    return asHtml
      ? { status: 303, body: '', headers: { Location: successUrl(session) } }
      : json(200, { id, status, payment_status, success_url: successUrl(session) });
  });
}

/** The form field `result` is `succeeded` or `failed`. */
async function authenticate(simulation: Simulation, request: PageRequest): Promise<Answer> {
  const { sessionId: id, accept } = request;
  if (request.method !== 'POST') {
    return run(simulation, null, (context) => {
      const intent = waitingIntent(context, id);
      return intent
        ? page(200, authenticationPage(intent))
        : page(
            410,
            messagePage('Nothing to confirm', 'This payment does not need your confirmation.'),
          );
    });
  }
  const isConfirmed = (await formOf(request)).get('result') === 'succeeded';
  return run(simulation, null, (context) => {
    const url = finishAuthentication(context, id, isConfirmed);
    if (url === undefined) {
      return page(
        410,
        messagePage('Nothing to confirm', 'This payment does not need your confirmation.'),
      );
    }
    return accept.includes('text/html')
      ? { status: 303, body: '', headers: { Location: url } }
      : json(200, { id, return_url: url });
  });
}

interface Fields extends PaymentForm {
  /** The total that the page showed, in cents; undefined for clients that send no form of ours. */
  readonly shown: number | undefined;
}

/** From `application/x-www-form-urlencoded` or `multipart/form-data`; without a card when it is neither. */
async function fieldsOf(request: PageRequest): Promise<Fields> {
  const form = await formOf(request);
  return {
    card: textOf(form.get('card')),
    saved: textOf(form.get('saved')),
    save: form.has('save'),
    address: addressIn(form),
    shown: form.has('shown') ? Number(form.get('shown')) : undefined,
  };
}

/** `state` is one of the United States, by default New York, or empty for a payer elsewhere. */
function addressIn(form: FormData): Stripe.Address {
  const country = textOf(form.get('country')) || 'US';
  const state = form.has('state') ? textOf(form.get('state')) : 'NY';
  return addressOf(country, state || null);
}

function formOf({ body, contentType }: PageRequest): Promise<FormData> {
  const response = new Response(body, { headers: { 'Content-Type': contentType } });
  return response.formData().catch(() => new FormData());
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function page(status: number, body: string): Answer {
  return { status, body, headers: PAGE_HEADERS };
}

function json(status: number, body: unknown): Answer {
  return { status, body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } };
}
