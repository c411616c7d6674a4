/**
 * The processor's webhook (specification section 6): verified on the raw bytes, stored, acknowledged.
 * An event is a nudge, never the truth: what was paid is asked of the processor, by the workflow. So of an
 * event only its id, its type and what it is about are read, whatever version of the API it is written in.
 */
import { isUtf8 } from 'node:buffer';
import { Stripe } from 'stripe';
import { uuidOf } from '../domain/ids.ts';
import type { Database } from '../store/database.ts';
import { recordProcessorEvent, type ProcessorEvent } from '../store/top-ups/processor-events.ts';

export interface WebhookDeps {
  readonly database: Database;
  readonly stripe: Stripe;
  /** Each is good: more than one during a rotation. */
  readonly webhookSecrets: readonly string[];
  /** Whether our key moves real money. */
  readonly isLive: boolean;
}

export type WebhookResult =
  | { readonly kind: 'stored' }
  | { readonly kind: 'invalid_signature' }
  /** Signed, but no event: no JSON, or without an id or a type. */
  | { readonly kind: 'invalid_event' };

/** An older signature is a replay. Stripe signs each delivery anew, retries too. */
const TOLERANCE_SECONDS = 300;
/** Stripe's own bound of its ids. */
const NAME_LENGTH_MAX = 255;

/**
 * Types after which a top-up may be paid, or certain never to be. Not a failed attempt: the hosted page
 * lets its customer try again, and a direct top-up has read the answer itself.
 */
const TOP_UP_EVENTS: ReadonlySet<string> = new Set([
  'checkout.session.completed',
  'checkout.session.async_payment_succeeded',
  'checkout.session.async_payment_failed',
  'checkout.session.expired',
  'payment_intent.succeeded',
]);

/** Of these a top-up is told however long ago it was credited. */
const REVERSAL_EVENTS = ['refund.', 'charge.refund', 'charge.dispute.'];

function topicOf(type: string): ProcessorEvent['topic'] {
  if (TOP_UP_EVENTS.has(type)) return 'payment_reported';
  return REVERSAL_EVENTS.some((start) => type.startsWith(start)) ? 'reversal_reported' : undefined;
}

/** Whether the key moves real money: `sk_live_...`, or a restricted `rk_live_...`. */
export function isLiveKey(secretKey: string): boolean {
  return /^[a-z]+_live_/.test(secretKey);
}

/** `rawBody` is what arrived, byte for byte. The event is safe in Postgres when this returns `stored`. */
export async function recordWebhook(
  deps: WebhookDeps,
  rawBody: Buffer,
  signatureHeader: string | undefined,
): Promise<WebhookResult> {
  if (!isSigned(deps, rawBody, signatureHeader ?? '')) return { kind: 'invalid_signature' };
  const event = eventIn(rawBody, deps.isLive);
  if (!event) return { kind: 'invalid_event' };
  await recordProcessorEvent(deps.database, event);
  return { kind: 'stored' };
}

/**
 * Whether the header has the form and an age with which a body may be signed: what has not is refused before its body is
 * read. Stripe's library throws errors of other kinds on other forms.
 */
export function mayBeSignature(header: string): boolean {
  if (!/^[\x20-\x7e]{1,1000}$/.test(header) || !/(?:^|,)v1=[0-9a-f]{64}(?:,|$)/.test(header)) {
    return false;
  }
  const [, seconds] = /(?:^|,)t=(\d{1,12})(?:,|$)/.exec(header) ?? [];
  return Number(seconds) * 1_000 >= Date.now() - TOLERANCE_SECONDS * 1_000;
}

/** Bytes that are no UTF-8 would be compared as what they are replaced by, and are signed by nobody. */
function isSigned(deps: WebhookDeps, rawBody: Buffer, signatureHeader: string): boolean {
  if (!mayBeSignature(signatureHeader) || !isUtf8(rawBody)) return false;
  const body = rawBody.toString();
  return deps.webhookSecrets.some((secret) => {
    try {
      const { signature } = deps.stripe.webhooks;
      return signature?.verifyHeader(body, signatureHeader, secret, TOLERANCE_SECONDS) ?? false;
    } catch (error) {
      if (error instanceof Stripe.errors.StripeSignatureVerificationError) return false;
      throw error;
    }
  });
}

function eventIn(rawBody: Buffer, isLive: boolean): ProcessorEvent | undefined {
  const event = membersOf(parsed(rawBody));
  const id = nameOf(event['id']);
  const type = nameOf(event['type']);
  if (id === undefined || type === undefined) return undefined;
  const object = membersOf(membersOf(event['data'])['object']);
  const objectId = nameOf(object['id']);
  return {
    id,
    type,
    objectId,
    topUpId: uuidOf('topUp', nameOf(membersOf(object['metadata'])['top_up_id']) ?? ''),
    paymentIntentId: object['object'] === 'payment_intent' ? objectId : paymentIntentOf(object),
    // Of a connected account, or of the other mode: about no payment that our key can see.
    topic: event['account'] || (event['livemode'] ?? isLive) !== isLive ? undefined : topicOf(type),
  };
}

/** An id, or the object itself where it was expanded. */
function paymentIntentOf(object: Members): string | undefined {
  const intent = object['payment_intent'];
  return nameOf(intent) ?? nameOf(membersOf(intent)['id']);
}

type Members = Readonly<Record<string, unknown>>;

/** None, of what is no object. */
function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {};
}

/** What Postgres takes as text, and Stripe as the name of anything. */
function nameOf(value: unknown): string | undefined {
  const isName =
    typeof value === 'string' &&
    value !== '' &&
    value.length <= NAME_LENGTH_MAX &&
    value.isWellFormed() &&
    !value.includes('\0');
  return isName ? value : undefined;
}

function parsed(rawBody: Buffer): unknown {
  try {
    return JSON.parse(rawBody.toString());
  } catch {
    return undefined;
  }
}
