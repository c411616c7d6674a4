/** The types of events that an endpoint can ask for, with what each means. A missing one does not compile. */
import type { WebhookEndpoint } from '../answers.ts';

type EventType = NonNullable<WebhookEndpoint['types']>[number];

const MEANINGS: Readonly<Record<EventType, string>> = {
  'balance.low': 'the balance is below your threshold',
  'balance.exhausted': 'the balance is used up',
  'budget.threshold_reached': 'a budget is nearly or fully used',
  'top_up.pending': 'a top-up is waiting for its payment',
  'top_up.completed': 'a top-up was credited',
  'top_up.expired': 'a checkout was not paid',
  'top_up.failed': 'a payment failed',
  'top_up.partially_refunded': 'part of a top-up was refunded',
  'top_up.refunded': 'a top-up was refunded',
  'top_up.disputed': 'a top-up is disputed',
  'top_up.charged_back': 'a top-up was charged back',
  'refund.requested': 'a refund was requested',
  'refund.made': 'a refund was made',
  'refund.failed': 'a refund failed',
  'dispute.open': 'a dispute was opened',
  'dispute.lost': 'a dispute was lost',
  'dispute.won': 'a dispute was won',
  'warning.open': 'a bank warned of fraud',
  'warning.won': 'a fraud warning is over',
  'charge.refunded': 'a charge was refunded to you',
  'hold.expired': 'a hold that you placed expired',
  'lease.expired': 'a lease that you took expired',
  'key.created': 'a key was created',
  'key.rolled': 'a key was rolled',
  'key.revoked': 'a key was revoked',
  'tool.price_changed': 'the price of a tool changed',
  'webhook_endpoint.disabled': 'another endpoint was disabled',
  'webhook_endpoint.test': 'you asked for a test',
};

/** For a select. A test is sent to every endpoint that is asked for one. */
export const EVENT_CHOICES = Object.entries(MEANINGS)
  .filter(([type]) => type !== 'webhook_endpoint.test')
  .map(([value, meaning]) => ({ value, label: `${value}: ${meaning}` }));
