/** What the conformance suite runs against: the simulator, or Stripe itself in test mode. */
import type { Stripe } from 'stripe';
import type { CheckedClient } from './checked-client.ts';
import { until } from '../support/stack.ts';

export interface Target extends CheckedClient {
  readonly title: 'the simulator' | "Stripe's test mode";
  readonly secretKey: string;
  /** The address of the API, without a trailing slash. */
  readonly url: string;
  /** Unix seconds. Everything that the suite makes is younger. */
  readonly startedAt: number;
  /**
   * Fills in the hosted page of a session with the number of a card or bank account. Undefined where only a person can,
   * and nobody is there.
   */
  readonly pay: ((url: string, number: string) => Promise<void>) | undefined;
  /** What arrived at a webhook, with its header. Undefined where no webhook can be received. */
  readonly deliveries: readonly Delivery[] | undefined;
  readonly webhookSecret: string;
  /** How long to wait before the next look. */
  readonly pollMs: number;
  /** Repeats the request, many times at once, until it returns true: too many were sent. */
  readonly exceedRateLimit: (request: () => Promise<boolean>) => Promise<void>;
}

export interface Delivery {
  readonly body: Buffer;
  readonly signature: string;
}

/** The event of this type about this object, once the target lists it. Its form is compared as well. */
export async function eventOf(
  { stripe, startedAt, pollMs }: Target,
  type: Stripe.Event['type'],
  objectId: string,
): Promise<Stripe.Event> {
  return until(
    async () => {
      const created = { gte: startedAt - CLOCK_SKEW_SECONDS };
      for await (const event of stripe.events.list({ type, created, limit: 100 })) {
        if ((event.data.object as { id?: string }).id === objectId) return event;
      }
      return undefined;
    },
    { intervalMs: pollMs },
  );
}

export const CLOCK_SKEW_SECONDS = 60;
