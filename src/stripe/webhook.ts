/**
 * The processor's webhook (specification section 6): verifies the raw bytes, stores the event, acknowledges
 * it. An event is a nudge, never the truth: the workflow asks the processor what was paid. So only the
 * event's id, type and subject are read, and the customer who saved a card, which works with any API version.
 */
import { isUtf8 } from 'node:buffer';
import { Stripe } from 'stripe';
import { uuidOf } from '../domain/ids.ts';
import { isStorableText } from '../domain/storable-text.ts';
import type { Database } from '../store/database.ts';
import { recordProcessorEvent, type ProcessorEvent } from '../store/top-ups/processor-events.ts';
import { isCardSaved, isFailedAttempt, topicOf } from './webhook-events.ts';

export interface WebhookDeps {
  readonly database: Database;
  readonly stripe: Stripe;
  /** Each is accepted; there is more than one during a rotation. */
  readonly webhookSecrets: readonly string[];
  /** Whether our key moves real money. */
  readonly isLive: boolean;
}

export type WebhookResult =
  | { readonly kind: 'stored' }
  | { readonly kind: 'invalid_signature' }
  /** Signed, but not an event: not JSON, or without an id or a type. */
  | { readonly kind: 'invalid_event' };

/** An older signature is a replay: Stripe signs every delivery again, including retries. */
const TOLERANCE_SECONDS = 300;
/** Stripe's own limit for ids. */
const NAME_LENGTH_MAX = 255;

/** Whether the key moves real money: `sk_live_...`, or a restricted `rk_live_...`. */
export function isLiveKey(secretKey: string): boolean {
  return /^[a-z]+_live_/.test(secretKey);
}

/** `rawBody` is the request body, byte for byte. When this returns `stored`, the event is committed in Postgres. */
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
 * Whether the header has a valid form and age, so that a request with a bad header is refused before its body is read.
 * On other forms, Stripe's library would throw different errors.
 */
export function mayBeSignature(header: string): boolean {
  if (!/^[\x20-\x7e]{1,1000}$/.test(header) || !/(?:^|,)v1=[0-9a-f]{64}(?:,|$)/.test(header)) {
    return false;
  }
  const [, seconds] = /(?:^|,)t=(\d{1,12})(?:,|$)/.exec(header) ?? [];
  return Number(seconds) * 1_000 >= Date.now() - TOLERANCE_SECONDS * 1_000;
}

/** Stripe signs UTF-8 only; decoding anything else would compare replacement characters. */
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
  // Events of a connected account, or of the other mode, concern objects that our key cannot see.
  const isOurs = !event['account'] && (event['livemode'] ?? isLive) === isLive;
  return {
    id,
    type,
    objectId,
    topUpId: uuidOf('topUp', nameOf(membersOf(object['metadata'])['top_up_id']) ?? ''),
    paymentIntentId:
      object['object'] === 'payment_intent' ? objectId : expandable(object['payment_intent']),
    topic: isOurs ? topicOf(type) : undefined,
    isFailedAttempt: isFailedAttempt(type),
    cardSavedBy:
      isOurs && isCardSaved(type, object['type']) ? expandable(object['customer']) : undefined,
  };
}

/** The id of an object that is given as an id or expanded. */
function expandable(value: unknown): string | undefined {
  return nameOf(value) ?? nameOf(membersOf(value)['id']);
}

type Members = Readonly<Record<string, unknown>>;

/** Empty for anything that is not an object. */
function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {};
}

/** A string that Postgres accepts as text and Stripe as an id or type. */
function nameOf(value: unknown): string | undefined {
  const isName =
    typeof value === 'string' &&
    value !== '' &&
    value.length <= NAME_LENGTH_MAX &&
    isStorableText(value);
  return isName ? value : undefined;
}

function parsed(rawBody: Buffer): unknown {
  try {
    return JSON.parse(rawBody.toString());
  } catch {
    return undefined;
  }
}
