/**
 * The conformance suite against Stripe itself, in test mode: `STRIPE_TEST_KEY=sk_test_... npm run
 * test:stripe`. It takes about ten minutes, makes payments with Stripe's test cards, and removes what can be
 * removed. Use a sandbox that nobody else uses at the same time. Also in the environment:
 *
 *   STRIPE_BY_HAND=1         somebody fills in the hosted pages, whose addresses the suite prints. Only a browser can pay
 *                            there, so those tests are pending without it.
 *   STRIPE_WEBHOOK_SECRET    what `stripe listen --print-secret` prints, while this runs in another terminal:
 *                            `stripe listen --forward-to 127.0.0.1:4242/webhooks/stripe`. Without it, the test of webhooks
 *                            is pending.
 */
import { checkedClient, removeMade } from './checked-client.ts';
import { listenForDeliveries } from './deliveries.ts';
import { describeConformance } from './suite/suite.ts';
import type { Target } from './target.ts';
import { readTestKey } from './test-key.ts';
import { until } from '../support/stack.ts';

const WEBHOOK_PORT = 4242;
const BY_HAND_TIMEOUT_MS = 5 * 60_000;
/** Stripe allows a sandbox 25 requests per second. */
const BURST = 100;
const BURSTS_MAX = 5;

const secretKey = readTestKey(process.env);
const webhookSecret = process.env['STRIPE_WEBHOOK_SECRET'] ?? '';

describe("conformance of Stripe's test mode", function () {
  this.timeout(3 * 60_000);
  let target: Target;
  let receiver: Awaited<ReturnType<typeof listenForDeliveries>> | undefined;

  before(async () => {
    if (webhookSecret) receiver = await listenForDeliveries(WEBHOOK_PORT);
    const client = checkedClient(secretKey);
    target = {
      ...client,
      title: "Stripe's test mode",
      secretKey,
      url: 'https://api.stripe.com',
      startedAt: Math.floor(Date.now() / 1_000),
      pollMs: 1_000,
      deliveries: receiver?.deliveries,
      webhookSecret,
      pay: process.env['STRIPE_BY_HAND'] === '1' ? payByHand : undefined,
      exceedRateLimit: async (request) => {
        for (let burst = 0; burst < BURSTS_MAX; burst += 1) {
          const answers = await Promise.all(Array.from({ length: BURST }, request));
          if (answers.includes(true)) return;
        }
      },
    };

    async function payByHand(url: string, number: string): Promise<void> {
      process.stderr.write(`\nPay here with ${number} (any later date, any code):\n${url}\n`);
      await until(
        async () => {
          const { data } = await client.stripe.checkout.sessions.list({ limit: 10 });
          return !data.some((session) => session.url === url && session.status === 'open');
        },
        { timeoutMs: BY_HAND_TIMEOUT_MS, intervalMs: 2_000 },
      );
    }
  });

  after(async () => {
    receiver?.close();
    await removeMade(target);
  });

  describeConformance(() => target);
});
