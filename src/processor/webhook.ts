/**
 * The processor's webhook (specification section 6): verified on the raw bytes, stored, acknowledged.
 * An event is a nudge, never the truth: what was paid is asked of the processor, by the workflow.
 */
import { Stripe } from 'stripe';
import { uuidOf } from '../domain/ids.ts';
import type { Database } from '../store/database.ts';
import { recordProcessorEvent } from '../store/processor-events.ts';

export interface WebhookDeps {
  readonly database: Database;
  readonly stripe: Stripe;
  /** Each is good: more than one during a rotation. */
  readonly webhookSecrets: readonly string[];
}

export type WebhookResult = { readonly kind: 'stored' } | { readonly kind: 'invalid_signature' };

/** An older signature is a replay. Stripe signs each delivery anew, retries too. */
const TOLERANCE_SECONDS = 300;

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

/** `rawBody` is what arrived, byte for byte. The event is safe in Postgres when this returns `stored`. */
export async function recordWebhook(
  deps: WebhookDeps,
  rawBody: Buffer,
  signatureHeader: string | undefined,
): Promise<WebhookResult> {
  const event = verify(deps, rawBody, signatureHeader ?? '');
  if (!event) return { kind: 'invalid_signature' };
  const object = event.data.object as Partial<ReportedObject>;
  await recordProcessorEvent(deps.database, {
    id: event.id,
    type: event.type,
    objectId: textOf(object.id),
    topUpId: uuidOf('topUp', textOf(object.metadata?.['top_up_id']) ?? ''),
    paymentIntentId: textOf(object.object === 'payment_intent' ? object.id : object.payment_intent),
    concernsTopUp: TOP_UP_EVENTS.has(event.type),
  });
  return { kind: 'stored' };
}

interface ReportedObject {
  readonly id: unknown;
  readonly object: unknown;
  readonly payment_intent: unknown;
  readonly metadata: Readonly<Record<string, unknown>> | null;
}

function verify(deps: WebhookDeps, rawBody: Buffer, signature: string): Stripe.Event | undefined {
  for (const secret of deps.webhookSecrets) {
    try {
      return deps.stripe.webhooks.constructEvent(rawBody, signature, secret, TOLERANCE_SECONDS);
    } catch (error) {
      if (!(error instanceof Stripe.errors.StripeSignatureVerificationError)) throw error;
    }
  }
  return undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
