/**
 * The types of the events that Farebox sends to an account's webhook endpoints. A type is never renamed or removed, and
 * members of its data are only added: receivers depend on them.
 */
import { TOP_UP_STATUSES } from './top-up.ts';

const TOP_UP_EVENTS = TOP_UP_STATUSES.map((status) => `top_up.${status}` as const);

/** src/schemas/events.ts has the data of each. */
export const EVENT_TYPES = [
  'balance.low',
  'balance.exhausted',
  'budget.threshold_reached',
  ...TOP_UP_EVENTS,
  'refund.requested',
  'refund.made',
  'refund.failed',
  'dispute.open',
  'dispute.lost',
  'dispute.won',
  'warning.open',
  'warning.won',
  'charge.refunded',
  'hold.expired',
  'lease.expired',
  'key.created',
  'key.rolled',
  'key.revoked',
  'tool.price_changed',
  'webhook_endpoint.disabled',
  'webhook_endpoint.test',
] as const;

export type EventType = (typeof EVENT_TYPES)[number];
