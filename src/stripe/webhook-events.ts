/**
 * The events that Farebox acts on. An endpoint in Stripe's dashboard subscribes to exactly these; docs/stripe.md lists
 * them. Others are stored and ignored.
 */
import type { Stripe } from 'stripe';
import type { ProcessorEvent } from '../store/top-ups/processor-events.ts';

/** What the workflow of the top-up is told. */
type Topic = NonNullable<ProcessorEvent['topic']>;

/**
 * A payment from the saved card that the bank wants confirmed may be declined after the confirmation. Other failed
 * attempts change nothing: the hosted page lets the customer retry, and a direct top-up reads the response itself.
 */
const ATTEMPT_FAILED = 'payment_intent.payment_failed' satisfies Stripe.Event['type'];

/**
 * After a payment event, a top-up may be paid, or can no longer be. Reversals are delivered no matter how long ago the
 * top-up was credited.
 */
const TOPICS: Readonly<Partial<Record<Stripe.Event['type'], Topic>>> = {
  'checkout.session.completed': 'payment_reported',
  'checkout.session.async_payment_succeeded': 'payment_reported',
  'checkout.session.async_payment_failed': 'payment_reported',
  'checkout.session.expired': 'payment_reported',
  'payment_intent.succeeded': 'payment_reported',
  [ATTEMPT_FAILED]: 'payment_reported',
  'charge.refunded': 'reversal_reported',
  'refund.created': 'reversal_reported',
  'refund.updated': 'reversal_reported',
  'refund.failed': 'reversal_reported',
  'charge.dispute.created': 'reversal_reported',
  'charge.dispute.updated': 'reversal_reported',
  'charge.dispute.closed': 'reversal_reported',
  'charge.dispute.funds_withdrawn': 'reversal_reported',
  'charge.dispute.funds_reinstated': 'reversal_reported',
  'radar.early_fraud_warning.created': 'reversal_reported',
  'radar.early_fraud_warning.updated': 'reversal_reported',
};

/** The hosted page attaches a card to the customer when it saves it, with or without a payment. */
const CARD_SAVED = 'payment_method.attached' satisfies Stripe.Event['type'];

export const WEBHOOK_EVENTS: readonly string[] = [...Object.keys(TOPICS), CARD_SAVED];

export function isCardSaved(type: string, methodType: unknown): boolean {
  return type === CARD_SAVED && methodType === 'card';
}

export function isFailedAttempt(type: string): boolean {
  return type === ATTEMPT_FAILED;
}

export function topicOf(type: string): ProcessorEvent['topic'] {
  return Object.hasOwn(TOPICS, type) ? TOPICS[type as Stripe.Event['type']] : undefined;
}
