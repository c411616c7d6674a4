/** The simulator answers as Stripe does: the suite, and Stripe's description of every route that it has. */
import assert from 'node:assert/strict';
import { ROUTE_NAMES } from '../../simulator/http/routes.ts';
import { WEBHOOK_EVENTS } from '../../src/stripe/webhook-events.ts';
import { SimulatorProcess } from '../simulator/simulator-process.ts';
import { checkedClient, removeMade } from './checked-client.ts';
import { callsOfFarebox } from './calls-of-farebox.ts';
import { listenForDeliveries } from './deliveries.ts';
import { findMethod } from './methods.ts';
import { describeConformance } from './suite/suite.ts';
import type { Target } from './target.ts';

const SECRET_KEY = 'sk_test_simulator';

describe('conformance of the simulator', () => {
  let target: Target;
  let close: () => Promise<void>;

  before(async () => {
    const receiver = await listenForDeliveries(0);
    const simulator = await SimulatorProcess.start(receiver.url, undefined, { settleSeconds: 0 });
    const address = { host: '127.0.0.1', port: simulator.port, protocol: 'http' } as const;
    const client = checkedClient(SECRET_KEY, address);
    target = {
      ...client,
      title: 'the simulator',
      secretKey: SECRET_KEY,
      url: `http://127.0.0.1:${simulator.port}`,
      startedAt: Math.floor(Date.now() / 1_000),
      pollMs: 25,
      deliveries: receiver.deliveries,
      webhookSecret: 'whsec_simulator',
      pay: async (url, card) => {
        const { status } = await fetch(url, {
          method: 'POST',
          body: new URLSearchParams({ card }),
        });
        assert.equal(status, 200);
      },
      exceedRateLimit: async (request) => {
        await simulator.control('POST', 'rate-limit', { per_second: 1 });
        for (let sent = 0; sent < 5; sent += 1) if (await request()) break;
        await simulator.control('DELETE', 'rate-limit');
      },
    };
    close = async () => {
      await simulator.remove();
      receiver.close();
    };
  });
  after(() => close());

  describeConformance(() => target);

  describe('the suite', () => {
    it('had a good answer from every route of the simulator', () => {
      const missing = ROUTE_NAMES.filter((route) => {
        const method = findMethod(...(route.split(' ') as [string, string]));
        return !method || !target.shapes.answered.has(method.call);
      });
      assert.deepEqual(missing, []);
    });

    it('makes every call that Farebox makes', () => {
      const missing = [...callsOfFarebox()].filter((call) => !target.shapes.answered.has(call));
      assert.deepEqual(missing, []);
    });

    it('sees every type of event that Farebox acts on, as it is declared', async () => {
      const { stripe, shapes } = target;
      for await (const event of stripe.events.list({ limit: 100 })) {
        assert.deepEqual(shapes.differencesOfEvent(event), [], event.id);
      }
      assert.deepEqual(
        WEBHOOK_EVENTS.filter((type) => !shapes.eventTypes.has(type)),
        [],
      );
    });

    it('leaves nothing behind that can be removed', async () => {
      const { stripe } = target;
      await removeMade(target);
      assert.deepEqual((await stripe.customers.list()).data, []);
      assert.deepEqual((await stripe.checkout.sessions.list({ status: 'open' })).data, []);
      for await (const { id, status } of stripe.paymentIntents.list({ limit: 100 })) {
        if (status === 'succeeded' || status === 'canceled') continue;
        // That of a failed bank debit can be neither paid again nor canceled.
        const { data } = await stripe.checkout.sessions.list({ payment_intent: id });
        assert.equal(data[0]?.status, 'complete', `${id} is ${status}`);
      }
    });
  });
});
