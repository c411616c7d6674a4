/** What holds for every call: versions, request ids, errors, idempotency keys, lists, limits. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Stripe } from 'stripe';
import { API_VERSION } from '../../../src/stripe/calls.ts';
import type { Target } from '../target.ts';
import { customerWith, errorOf, payWith } from './order.ts';

/** Calls that take objects as parameters, and a good request for each. */
const NESTED: Readonly<Record<string, { readonly good: string; readonly objects: string[] }>> = {
  '/v1/customers': { good: '', objects: ['address', 'invoice_settings', 'shipping', 'tax'] },
  '/v1/payment_intents': {
    good: 'amount=2500&currency=usd',
    objects: ['automatic_payment_methods', 'payment_method_options', 'shipping', 'transfer_data'],
  },
  '/v1/checkout/sessions': {
    good:
      'mode=payment&success_url=https://example.com&line_items[0][quantity]=1' +
      '&line_items[0][price_data][currency]=usd&line_items[0][price_data][unit_amount]=2500' +
      '&line_items[0][price_data][product_data][name]=Balance',
    objects: [
      'adaptive_pricing',
      'automatic_tax',
      'branding_settings',
      'customer_update',
      'invoice_creation',
      'line_items[0][price_data][product_data]',
      'payment_intent_data',
      'payment_method_options',
      'saved_payment_method_options',
      'tax_id_collection',
    ],
  },
};

export function describeProtocol(get: () => Target): void {
  /** Without the package, to see headers and bytes. */
  async function send(verb: string, path: string, form = '', headers = {}) {
    const { url, secretKey } = get();
    const isGet = verb === 'GET';
    const response = await fetch(`${url}${path}${isGet && form ? `?${form}` : ''}`, {
      method: verb,
      ...(!isGet && { body: form }),
      headers: {
        Authorization: `Bearer ${secretKey}`,
        'Content-Type': 'application/x-www-form-urlencoded',
        'Stripe-Version': API_VERSION,
        ...headers,
      },
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text };
  }

  async function refusal(path: string, form: string) {
    const { status, text } = await send('POST', path, form);
    const { error } = JSON.parse(text) as { error: { code?: string; param?: string } };
    return [status, error.code, error.param];
  }

  describe('every answer', () => {
    it('is of our API version and names its request', async () => {
      const { headers } = await send('GET', '/v1/customers', 'limit=1');
      assert.equal(headers.get('stripe-version'), API_VERSION);
      assert.match(headers.get('request-id') ?? '', /^req_/);
      assert.match(headers.get('content-type') ?? '', /^application\/json/);
      assert.equal(get().stripe.getApiField('version'), API_VERSION);
      const { lastResponse } = await get().stripe.customers.list({ limit: 1 });
      assert.match(lastResponse.requestId, /^req_/);
    });

    it('is a 401 without a valid key', async () => {
      for (const Authorization of ['', 'Bearer sk_test_none']) {
        const { status, text } = await send('GET', '/v1/customers', '', { Authorization });
        assert.equal(status, 401);
        assert.equal(JSON.parse(text).error.type, 'invalid_request_error');
      }
    });

    it('is a 404 for an unknown id in the path, and a 400 for one in a parameter', async () => {
      const { stripe } = get();
      for (const read of [
        () => stripe.customers.retrieve('cus_none'),
        () => stripe.checkout.sessions.retrieve('cs_test_none'),
        () => stripe.paymentIntents.retrieve('pi_none'),
        () => stripe.charges.retrieve('ch_none'),
        () => stripe.refunds.retrieve('re_none'),
        () => stripe.disputes.retrieve('dp_none'),
        () => stripe.events.retrieve('evt_none'),
        () => stripe.paymentMethods.retrieve('pm_none'),
      ]) {
        const error = await errorOf(read());
        assert.equal(error.statusCode, 404);
        assert.equal(error.code, 'resource_missing');
        assert.match(error.requestId ?? '', /^req_/);
      }
      const params = { amount: 500, currency: 'usd', customer: 'cus_none' };
      const error = await errorOf(stripe.paymentIntents.create(params));
      assert.deepEqual(
        [error.statusCode, error.code, error.param],
        [400, 'resource_missing', 'customer'],
      );
    });

    it('names the parameter that is unknown, missing or malformed', async () => {
      const path = '/v1/payment_intents';
      const good = 'amount=500&currency=usd';
      assert.deepEqual(await refusal(path, `${good}&amout=1`), [400, 'parameter_unknown', 'amout']);
      assert.deepEqual(await refusal(path, 'currency=usd'), [400, 'parameter_missing', 'amount']);
      assert.deepEqual(await refusal(path, 'amount=5.5&currency=usd'), [
        400,
        'parameter_invalid_integer',
        'amount',
      ]);
      assert.deepEqual(await refusal(path, 'amount=49&currency=usd'), [
        400,
        'amount_too_small',
        'amount',
      ]);
    });

    it('refuses members of parameters that Stripe does not know', async () => {
      for (const [path, { good, objects }] of Object.entries(NESTED)) {
        for (const object of objects) {
          const param = `${object}[no_such_member]`;
          const [status, code, named] = await refusal(path, `${good}&${param}=x`);
          assert.deepEqual([path, status, code, named], [path, 400, 'parameter_unknown', param]);
        }
      }
    });

    it('expands what was asked for, and refuses what cannot be expanded', async () => {
      const { stripe } = get();
      const { intent } = await payWith(get(), 'pm_card_visa');
      const { latest_charge } = await stripe.paymentIntents.retrieve(intent.id, {
        expand: ['latest_charge.balance_transaction'],
      });
      const transaction = (latest_charge as Stripe.Charge).balance_transaction;
      assert.equal((transaction as Stripe.BalanceTransaction).object, 'balance_transaction');
      const error = await errorOf(
        stripe.paymentIntents.retrieve(intent.id, { expand: ['nothing'] }),
      );
      assert.equal(error.statusCode, 400);
    });
  });

  describe('an idempotency key', () => {
    it('gives the first answer again, byte for byte', async () => {
      const key = { 'Idempotency-Key': randomUUID() };
      const first = await send('POST', '/v1/customers', 'name=Ada', key);
      const again = await send('POST', '/v1/customers', 'name=Ada', key);
      assert.equal(again.text, first.text);
      assert.equal(first.headers.get('idempotent-replayed'), null);
      assert.equal(again.headers.get('idempotent-replayed'), 'true');
      assert.equal(again.headers.get('original-request'), first.headers.get('request-id'));
      await get().stripe.customers.del(JSON.parse(first.text).id);
    });

    it('refuses another body with an error of its own type', async () => {
      const { stripe } = get();
      const options = { idempotencyKey: randomUUID() };
      await stripe.customers.create({ name: 'Ada' }, options);
      const error = await errorOf(stripe.customers.create({ name: 'Bob' }, options));
      assert.ok(error instanceof Stripe.errors.StripeIdempotencyError);
      assert.equal(error.statusCode, 400);
    });

    it('keeps a decline, so that a repeat is not a second attempt', async () => {
      const { stripe } = get();
      const { customer, card } = await customerWith(get(), 'pm_card_chargeCustomerFail');
      const options = { idempotencyKey: randomUUID() };
      const { id } = await stripe.paymentIntents.create({ amount: 500, currency: 'usd', customer });
      const confirm = () =>
        errorOf(
          stripe.paymentIntents.confirm(id, { payment_method: card, off_session: true }, options),
        );
      const first = await confirm();
      const second = await confirm();
      assert.equal(second.headers?.['idempotent-replayed'], 'true');
      assert.equal(second.charge, first.charge);
    });
  });

  describe('a list', () => {
    it('is newest first, and pages forwards and backwards', async () => {
      const { stripe } = get();
      const email = `${randomUUID()}@example.com`;
      const ids: string[] = [];
      for (let made = 0; made < 3; made += 1)
        ids.push((await stripe.customers.create({ email })).id);
      const newest = ids.toReversed();
      const first = await stripe.customers.list({ email, limit: 2 });
      assert.deepEqual(
        first.data.map(({ id }) => id),
        newest.slice(0, 2),
      );
      assert.equal(first.has_more, true);
      const after = String(newest[1]);
      const second = await stripe.customers.list({ email, limit: 2, starting_after: after });
      assert.deepEqual(
        second.data.map(({ id }) => id),
        newest.slice(2),
      );
      assert.equal(second.has_more, false);
      const before = await stripe.customers.list({
        email,
        limit: 2,
        ending_before: String(newest[2]),
      });
      assert.deepEqual(
        before.data.map(({ id }) => id),
        newest.slice(0, 2),
      );
      const all = [];
      for await (const { id } of stripe.customers.list({ email, limit: 1 })) all.push(id);
      assert.deepEqual(all, newest);
    });

    it('refuses a cursor that is unknown, and a page of more than 100', async () => {
      const { stripe } = get();
      const unknown = await errorOf(stripe.customers.list({ starting_after: 'cus_none' }));
      assert.equal(unknown.code, 'resource_missing');
      assert.equal((await errorOf(stripe.customers.list({ limit: 101 }))).param, 'limit');
    });

    it('holds what was created within the given time', async () => {
      const { stripe } = get();
      const { id, created } = await stripe.customers.create();
      const within = await stripe.customers.list({
        created: { gte: created, lte: created },
        limit: 100,
      });
      assert.ok(within.data.some((customer) => customer.id === id));
      const later = await stripe.customers.list({ created: { gt: created + 3_600 } });
      assert.deepEqual(later.data, []);
    });
  });

  describe('too many requests', () => {
    it('are answered with 429, which the package knows as a rate limit', async () => {
      const errors: unknown[] = [];
      await get().exceedRateLimit(async () => {
        await get()
          .stripe.customers.list({ limit: 1 })
          .catch((error: unknown) => errors.push(error));
        return errors.length > 0;
      });
      const [error] = errors as Stripe.errors.StripeError[];
      assert.ok(error instanceof Stripe.errors.StripeRateLimitError, String(error));
      assert.equal(error.statusCode, 429);
      assert.equal(error.code, 'rate_limit');
    });
  });
}
