/** Webhooks that are forged, old, malformed or repeated: only a genuine one counts, and once. */
import assert from 'node:assert/strict';
import type { WorkflowHandle } from '@temporalio/client';
import { Client } from 'pg';
import { Stripe } from 'stripe';
import { readTemporalConfig } from '../../src/config.ts';
import { workflowIdIn } from '../../src/domain/task-queues.ts';
import { uuidOf } from '../../src/domain/ids.ts';
import { createTemporalClient, type TemporalClient } from '../../src/temporal/client.ts';
import { createTestAccount, type TestAccount } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { assertError, call } from '../support/http.ts';
import { balanceOf, control, openCheckout, pay } from '../support/payments.ts';
import { type Stack, startStack, until } from '../support/stack.ts';

const nowSeconds = () => Math.floor(Date.now() / 1_000);

/** A paid checkout of $25.00 without any webhook yet. */
interface Payment {
  readonly account: TestAccount;
  readonly topUpId: string;
  readonly sessionId: string;
  readonly paymentIntent: string;
  readonly workflow: WorkflowHandle;
}

interface Telling {
  /** The change to a genuine event. */
  readonly tell?: (event: object, payment: Payment) => object;
  /** Sent first. */
  readonly prepare?: (payment: Payment, send: (id: string) => Promise<void>) => Promise<unknown>;
}

const reported = ({ sessionId, topUpId }: Payment) => ({
  object: 'event',
  type: 'checkout.session.completed',
  livemode: false,
  data: {
    object: { id: sessionId, object: 'checkout.session', metadata: { top_up_id: topUpId } },
  },
});

describe('POST /webhooks/stripe', () => {
  let stack: Stack;
  let sql: Client;
  let temporal: TemporalClient;
  let payment: Payment;
  let payload: string;
  let secret: string;

  before(async () => {
    // The processor sends nothing and nobody asks it: only the webhooks of these tests lead to credits.
    stack = await startStack({ env: { FIRST_ASK_MS: '3600000' } });
    sql = new Client({ connectionString: stack.database.url });
    await sql.connect();
    temporal = createTemporalClient(readTemporalConfig(stack.env));
    secret = stack.env['STRIPE_WEBHOOK_SECRET'] ?? '';
    await control(stack.simulator, 'webhooks', { mode: 'drop' });
    payment = await makePayment();
    payload = JSON.stringify({ ...reported(payment), id: 'evt_of_these_tests' });
  });
  after(async () => {
    await sql?.end();
    await temporal?.close();
    await stack?.stop();
  });

  async function makePayment(): Promise<Payment> {
    const account = await createTestAccount(stack.database.url, 0);
    const { topUpId, sessionUrl } = await openCheckout(stack.api, account, 25);
    assert.ok(await pay(sessionUrl));
    const { payments } = (await control(stack.simulator, 'payments')) as {
      payments: { metadata: object; payment_intent: string; checkout_session: string }[];
    };
    const made = payments.find(({ metadata }) => Object.values(metadata).includes(topUpId));
    assert.ok(made);
    return {
      account,
      topUpId,
      sessionId: made.checkout_session,
      paymentIntent: made.payment_intent,
      workflow: temporal.client.workflow.getHandle(workflowIdIn(temporal, 'top-up', topUpId)),
    };
  }

  const report = (signature: string | undefined, body = payload) =>
    call(stack.api, 'POST', '/webhooks/stripe', {
      rawBody: body,
      headers: signature === undefined ? {} : { 'stripe-signature': signature },
    });

  const signed = (body: string, { by = secret, at = nowSeconds() } = {}) =>
    new Stripe('sk_test_of_these_tests').webhooks.generateTestHeaderString({
      payload: body,
      secret: by,
      timestamp: at,
    });

  async function count(rows: string, values: readonly unknown[] = []): Promise<number> {
    const query = `select count(*)::int as count from farebox.${rows}`;
    const found = await sql.query<{ count: number }>(query, [...values]);
    return found.rows[0]?.count ?? 0;
  }
  const storedEvents = () => count('processor_events');
  const waitingReports = () => count("outbox where topic like '%_reported'");

  async function creditedOnce({ account, topUpId }: Payment): Promise<void> {
    assert.equal(await balanceOf(stack.api, account), 25);
    assert.equal(await count('movements where top_up_id = $1', [uuidOf('topUp', topUpId)]), 1);
  }

  const refusals: Readonly<Record<string, () => ReturnType<typeof report>>> = {
    'signed with another secret': () => report(signed(payload, { by: 'whsec_of_somebody' })),
    'signed for another body': () => report(signed(payload.replace('cs_test', 'cs_2'))),
    'changed by a single space': () => report(signed(payload), `${payload} `),
    'older than five minutes': () => report(signed(payload, { at: nowSeconds() - 301 })),
    'without a signature': () => report(undefined),
    'with an empty signature': () => report(''),
    'with a signature of another form': () => report('v1=abc'),
    'with a time that is none': () => report(signed(payload).replace(/t=\d+/, 't=soon')),
    'with a scheme that is not v1': () => report(signed(payload).replace('v1=', 'v0=')),
    'that is not even JSON': () => report(signed('{').replace('v1=', 'v1=0'), '{'),
  };

  for (const [what, send] of Object.entries(refusals)) {
    it(`refuses an event ${what}, and stores nothing of it`, async () => {
      assertError(await send(), 400, 'invalid_signature');
      assert.equal(await storedEvents(), 0);
      assert.equal(await balanceOf(stack.api, payment.account), 0);
    });
  }

  it('refuses a signed body that is not JSON, and one larger than any event', async () => {
    assertError(await report(signed('{'), '{'), 400, 'invalid_request');
    const huge = payload.replace('cs_test', 'x'.repeat(600 * 1024));
    assertError(await report(signed(huge), huge), 413, 'payload_too_large');
    assert.equal(await storedEvents(), 0);
  });

  /** Signed, and about a payment that cannot be ours. */
  const foreign: Readonly<Record<string, (event: object) => object>> = {
    'of a connected account': (event) => ({ ...event, account: 'acct_1' }),
    'of live payments': (event) => ({ ...event, livemode: true }),
    'of a type that nobody knows': (event) => ({ ...event, type: 'checkout.session.vanished' }),
    'of a session that nobody opened': (event) => ({
      ...event,
      data: { object: { id: 'cs_of_nobody', object: 'checkout.session', metadata: {} } },
    }),
  };

  for (const [what, change] of Object.entries(foreign)) {
    it(`accepts an event ${what}, and does nothing`, async () => {
      const before = await storedEvents();
      const body = JSON.stringify(change({ ...reported(payment), id: `evt ${what}` }));
      assert.equal((await report(signed(body), body)).status, 200);
      assert.equal(await storedEvents(), before + 1);
      assert.equal(await waitingReports(), 0);
      assert.equal(await balanceOf(stack.api, payment.account), 0);
    });
  }

  it('accepts a hundred identical events at once, and credits once', async () => {
    const before = await storedEvents();
    const answers = await Promise.all(Array.from({ length: 100 }, () => report(signed(payload))));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    await until(async () => (await balanceOf(stack.api, payment.account)) === 25);
    assert.equal(await storedEvents(), before + 1);
    assert.equal((await report(signed(payload))).status, 200);
    assert.equal(await storedEvents(), before + 1);
    await creditedOnce(payment);
  });

  /** Genuine webhooks, in the ways in which they may arrive. */
  const truths: Readonly<Record<string, Telling>> = {
    'days after it was made': {
      tell: (event) => ({ ...event, created: nowSeconds() - 9 * 86_400 }),
    },
    'in the shape of a later version': {
      tell: (event, { sessionId }) => ({
        ...event,
        api_version: '2031-01-01.later',
        data: { object: { id: sessionId, object: 'checkout.session.v9', amount: { usd: 9 } } },
      }),
    },
    'with its payment intent expanded': {
      tell: (event, { paymentIntent: id }) => ({
        ...event,
        data: { object: { payment_intent: { id, object: 'payment_intent' } } },
      }),
      prepare: ({ topUpId, paymentIntent }) =>
        sql.query('update farebox.top_ups set payment_intent_id = $2 where id = $1', [
          uuidOf('topUp', topUpId),
          paymentIntent,
        ]),
    },
    'after its workflow was terminated': { prepare: ({ workflow }) => workflow.terminate() },
    'after its workflow was terminated, between two reports': {
      prepare: async ({ workflow }, send) => {
        await send('before');
        await workflow.terminate().catch(() => {}); // it may have ended by then
      },
    },
  };

  for (const [what, { tell = (event: object) => event, prepare }] of Object.entries(truths)) {
    it(`credits once for ${what}, and again after its end`, async () => {
      const paid = await makePayment();
      const send = async (id: string) => {
        const body = JSON.stringify({ ...tell(reported(paid), paid), id: `evt ${what} ${id}` });
        assert.equal((await report(signed(body), body)).status, 200);
      };
      await prepare?.(paid, send);
      await send('once');
      await until(async () => (await balanceOf(stack.api, paid.account)) === 25);
      await send('again');
      await until(async () => (await waitingReports()) === 0);
      await creditedOnce(paid);
    });
  }

  it('leaves the books correct after all of this', () => proveBooks(stack.env));
});
