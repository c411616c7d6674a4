/** The simulator's API as the stripe package sees it: keys, errors, idempotency, injected faults. */
import assert from 'node:assert/strict';
import type { Stripe } from 'stripe';
import { openSimulator, type SimulatorProcess } from './simulator-process.ts';

describe("the simulator's API", () => {
  let simulator: SimulatorProcess;
  let stripe: Stripe;
  let close: () => Promise<void>;

  before(async () => {
    ({ simulator, stripe, close } = await openSimulator());
  });
  after(() => close());

  afterEach(() => simulator.control('DELETE', 'faults'));

  /** A POST without the client, to see the raw answer. */
  async function post(path: string, body: string, key?: string) {
    const response = await fetch(`http://127.0.0.1:${simulator.port}${path}`, {
      method: 'POST',
      body,
      headers: {
        Authorization: 'Bearer sk_test_simulator',
        'Content-Type': 'application/x-www-form-urlencoded',
        ...(key !== undefined && { 'Idempotency-Key': key }),
      },
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  }

  async function refusal(form: string) {
    const { status, text } = await post('/v1/payment_intents', form);
    const { error } = JSON.parse(text) as { error: { code?: string; param?: string } };
    return [status, error.code, error.param];
  }

  async function countCustomers(email: string): Promise<number> {
    return (await stripe.customers.list({ email, limit: 100 })).data.length;
  }

  describe('errors', () => {
    it('refuses a wrong key and a missing one', async () => {
      await assert.rejects(simulator.client('sk_test_wrong').customers.list(), {
        type: 'StripeAuthenticationError',
        statusCode: 401,
      });
      const url = `http://127.0.0.1:${simulator.port}/v1/customers`;
      const response = await fetch(url);
      assert.equal(response.status, 401);
    });

    it('names the request in every answer', async () => {
      const { lastResponse } = await stripe.customers.create();
      assert.match(lastResponse.requestId, /^req_/);
      const error = (await stripe.customers
        .retrieve('cus_none')
        .catch((reason: unknown) => reason)) as Stripe.errors.StripeError;
      assert.match(error.requestId ?? '', /^req_/);
    });

    it('answers 404 for an id in the path that names nothing, 400 for one in a parameter', async () => {
      for (const call of [
        () => stripe.customers.retrieve('cus_none'),
        () => stripe.checkout.sessions.retrieve('cs_test_none'),
        () => stripe.paymentIntents.retrieve('pi_none'),
        () => stripe.refunds.retrieve('re_none'),
        () => stripe.disputes.retrieve('dp_none'),
        () => stripe.events.retrieve('evt_none'),
        () => stripe.paymentMethods.retrieve('pm_none'),
      ]) {
        await assert.rejects(call(), { statusCode: 404, code: 'resource_missing' });
      }
      await assert.rejects(
        stripe.paymentIntents.create({ amount: 500, currency: 'usd', customer: 'cus_none' }),
        { statusCode: 400, code: 'resource_missing', param: 'customer' },
      );
    });

    it('refuses parameters that are unknown, missing or malformed, and does nothing', async () => {
      const good = 'amount=500&currency=usd';
      assert.deepEqual(await refusal(`${good}&amout=1`), [400, 'parameter_unknown', 'amout']);
      assert.deepEqual(await refusal('currency=usd'), [400, 'parameter_missing', 'amount']);
      assert.deepEqual(await refusal('amount=5.5&currency=usd'), [
        400,
        'parameter_invalid_integer',
        'amount',
      ]);
      assert.deepEqual(await refusal('amount=49&currency=usd'), [
        400,
        'amount_too_small',
        'amount',
      ]);
      assert.deepEqual(await refusal(`${good}&metadata=x`), [400, undefined, 'metadata']);
      assert.deepEqual(await refusal(`${good}&metadata[k][l]=x`), [400, undefined, 'metadata[k]']);
      assert.deepEqual(await refusal(`${good}&amount[a]=1`), [400, undefined, 'amount[a]']);
      assert.deepEqual((await stripe.paymentIntents.list()).data, []);
    });

    it('names the property that cannot be expanded', async () => {
      const { id } = await stripe.customers.create();
      await assert.rejects(stripe.customers.retrieve(id, { expand: ['nothing'] }), /nothing/);
    });

    it('answers 404 to any other path', async () => {
      await assert.rejects(stripe.products.list(), { statusCode: 404 });
    });
  });

  describe('idempotency keys', () => {
    it('return the first answer again, byte for byte', async () => {
      const first = await post('/v1/customers', 'email=once%40example.com', 'key-1');
      const again = await post('/v1/customers', 'email=once%40example.com', 'key-1');
      assert.equal(again.text, first.text);
      assert.equal(first.headers.get('idempotent-replayed'), null);
      assert.equal(again.headers.get('idempotent-replayed'), 'true');
      assert.equal(again.headers.get('original-request'), first.headers.get('request-id'));
      assert.equal(await countCustomers('once@example.com'), 1);
    });

    it('refuse other parameters, and another path', async () => {
      const options = { idempotencyKey: 'key-2' };
      const { id } = await stripe.customers.create({ email: 'a@example.com' }, options);
      await assert.rejects(stripe.customers.create({ email: 'b@example.com' }, options), {
        type: 'StripeIdempotencyError',
        statusCode: 400,
      });
      await assert.rejects(stripe.customers.update(id, { email: 'a@example.com' }, options), {
        type: 'StripeIdempotencyError',
      });
    });

    it('remember a decline, so that the same attempt is not made twice', async () => {
      const params = {
        amount: 500,
        currency: 'usd',
        payment_method: 'pm_card_chargeDeclined',
        confirm: true,
        metadata: { attempt: 'declined-once' },
      };
      const attempt = async (): Promise<unknown> =>
        stripe.paymentIntents
          .create(params, { idempotencyKey: 'key-3' })
          .catch((error: unknown) => error);
      const first = (await attempt()) as Stripe.errors.StripeCardError;
      const second = (await attempt()) as Stripe.errors.StripeCardError;
      assert.equal(first.code, 'card_declined');
      assert.equal(second.payment_intent?.id, first.payment_intent?.id);
    });

    it('remember a refusal that depended on the state', async () => {
      const intent = await stripe.paymentIntents.create({ amount: 500, currency: 'usd' });
      const path = `/v1/payment_intents/${intent.id}/confirm`;
      const first = await post(path, '', 'key-9');
      assert.equal(first.status, 400);
      await stripe.paymentIntents.confirm(intent.id, { payment_method: 'pm_card_visa' });
      assert.equal((await post(path, '', 'key-9')).text, first.text);
    });

    it('forget a request that was refused before it began', async () => {
      assert.equal(
        (await post('/v1/payment_intents', 'amount=x&currency=usd', 'key-4')).status,
        400,
      );
      const good = await post('/v1/payment_intents', 'amount=500&currency=usd', 'key-4');
      assert.equal(good.status, 200);
    });

    it('are forgotten on command', async () => {
      const first = await post('/v1/customers', 'name=x', 'key-10');
      await simulator.control('DELETE', 'idempotency-keys');
      assert.notEqual((await post('/v1/customers', 'name=x', 'key-10')).text, first.text);
    });

    it('answer 409 while the first request is in progress', async () => {
      await simulator.control('POST', 'faults', {
        path: '/v1/customers',
        kind: 'delay',
        ms: 3_000,
      });
      const statuses = await Promise.all(
        [1, 2].map(async () => (await post('/v1/customers', 'name=x', 'key-5')).status),
      );
      assert.deepEqual(
        statuses.toSorted((a, b) => a - b),
        [200, 409],
      );
      const later = await post('/v1/customers', 'name=x', 'key-5');
      assert.equal(later.headers.get('idempotent-replayed'), 'true');
    });
  });

  describe('faults', () => {
    it('fail as often as configured, and nothing is done meanwhile', async () => {
      const fault = { method: 'POST', path: '/v1/customers', kind: 'error', status: 503, times: 2 };
      await simulator.control('POST', 'faults', fault);
      const email = 'outage@example.com';
      for (let attempt = 0; attempt < 2; attempt += 1) {
        await assert.rejects(stripe.customers.create({ email }), {
          type: 'StripeAPIError',
          statusCode: 503,
        });
      }
      assert.equal(await countCustomers(email), 0);
      await stripe.customers.create({ email });
      assert.equal(await countCustomers(email), 1);
    });

    it('include the headers of an error', async () => {
      await simulator.control('POST', 'faults', {
        path: '/v1/customers',
        kind: 'error',
        status: 429,
        headers: { 'Retry-After': '7' },
      });
      const { status, headers } = await post('/v1/customers', '');
      assert.deepEqual([status, headers.get('retry-after')], [429, '7']);
    });

    it('drop a request unseen', async () => {
      await simulator.control('POST', 'faults', { path: '/v1/customers', kind: 'drop' });
      await assert.rejects(post('/v1/customers', 'email=dropped%40example.com', 'key-6'));
      assert.equal(await countCustomers('dropped@example.com'), 0);
    });

    it('do the work and lose the answer, which the key still returns', async () => {
      await simulator.control('POST', 'faults', {
        method: 'POST',
        path: '/v1/customers',
        kind: 'do_then_drop',
      });
      const email = 'email=lost%40example.com';
      await assert.rejects(post('/v1/customers', email, 'key-7'));
      const again = await post('/v1/customers', email, 'key-7');
      assert.equal(again.headers.get('idempotent-replayed'), 'true');
      assert.equal(await countCustomers('lost@example.com'), 1);
    });

    it('do the work and answer 500 forever', async () => {
      await simulator.control('POST', 'faults', {
        method: 'POST',
        path: '/v1/customers',
        kind: 'do_then_error',
      });
      const email = 'email=stored%40example.com';
      for (let attempt = 0; attempt < 2; attempt += 1) {
        assert.equal((await post('/v1/customers', email, 'key-8')).status, 500);
      }
      assert.equal(await countCustomers('stored@example.com'), 1);
    });
  });
});
