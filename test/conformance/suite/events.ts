/** Events: as lists show them, and as webhooks bring them. */
import assert from 'node:assert/strict';
import type { Stripe } from 'stripe';
import { API_VERSION } from '../../../src/stripe/calls.ts';
import { mayBeSignature } from '../../../src/stripe/webhook.ts';
import { until } from '../../support/stack.ts';
import { eventOf, type Target } from '../target.ts';
import { payWith } from './order.ts';

export function describeEvents(get: () => Target): void {
  describe('an event', () => {
    it('is of our API version, and of the request that caused it', async () => {
      const { stripe } = get();
      const { intent } = await payWith(get(), 'pm_card_visa');
      const event = await eventOf(get(), 'payment_intent.succeeded', intent.id);
      const again = await stripe.events.retrieve(event.id);
      assert.equal(again.type, event.type);
      assert.equal(again.livemode, false);
      assert.match(again.request?.id ?? '', /^req_/);
      // An account's own version renders the events of lists; ours does, where it is the same.
      if (get().title === 'the simulator') assert.equal(again.api_version, API_VERSION);
    });

    it('arrives signed at a webhook', async function () {
      const { deliveries, stripe, webhookSecret, pollMs } = get();
      if (!deliveries) return this.skip();
      const { intent } = await payWith(get(), 'pm_card_visa');
      const { body, signature } = await until(
        () =>
          deliveries.find((each) => {
            const { type, data } = JSON.parse(each.body.toString()) as Stripe.Event;
            return (
              type === 'payment_intent.succeeded' &&
              (data.object as { id: string }).id === intent.id
            );
          }),
        { intervalMs: pollMs },
      );
      assert.ok(mayBeSignature(signature), signature);
      const event = stripe.webhooks.constructEvent(body, signature, webhookSecret);
      assert.deepEqual(get().shapes.differencesOfEvent(event), []);
      assert.throws(() => stripe.webhooks.constructEvent(body, signature, `${webhookSecret}x`));
      const changed = Buffer.from(body.toString().replace('2500', '9900'));
      assert.throws(() => stripe.webhooks.constructEvent(changed, signature, webhookSecret));
    });
  });
}
