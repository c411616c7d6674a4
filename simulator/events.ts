/**
 * Events: a snapshot of an object, stored and owed to the webhook in the transaction that changed it.
 */
import type Stripe from 'stripe';
import { ok } from './http/answers.ts';
import type { Context, Handler } from './context.ts';
import { noSuch } from './http/errors.ts';
import { newId } from './ids.ts';
import { listPage } from './http/lists.ts';
import type { Kind, Kinds } from './store.ts';

export const API_VERSION = '2026-10-28.endive';

/** The event types that the simulator emits. All are types of Stripe's. */
export type EventType = Extract<
  Stripe.Event['type'],
  | `checkout.session.${'completed' | 'expired' | `async_payment_${'succeeded' | 'failed'}`}`
  | `payment_intent.${'created' | 'processing' | 'succeeded' | 'payment_failed' | 'canceled' | 'requires_action'}`
  | `charge.${'succeeded' | 'failed' | 'refunded'}`
  | `review.${'opened' | 'closed'}`
  | `refund.${'created' | 'updated' | 'failed'}`
  | `charge.dispute.${'created' | 'updated' | 'closed' | 'funds_withdrawn' | 'funds_reinstated'}`
  | `customer.${'created' | 'updated' | 'deleted'}`
  | `setup_intent.${'created' | 'succeeded'}`
  | `radar.early_fraud_warning.${'created' | 'updated'}`
  | `payment_method.${'attached' | 'detached'}`
>;

export function record(context: Context, type: EventType, object: Kinds[Kind]): void {
  const event = {
    id: newId('evt'),
    object: 'event',
    api_version: API_VERSION,
    created: context.now,
    data: { object },
    livemode: false,
    pending_webhooks: 1,
    request: context.request,
    type,
  } as Stripe.Event;
  context.store.insert(event);
  context.store.owe(event.id, Date.now());
}

export const retrieveEvent: Handler = ({ store }, _params, id) => {
  const event = store.find('event', id);
  if (!event) throw noSuch('event', id);
  return ok(event);
};

export const listEvents: Handler = (context, params) =>
  ok(listPage(context, params, 'event', '/v1/events', { type: params.string('type') }));
