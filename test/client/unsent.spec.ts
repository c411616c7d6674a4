/** What the client refuses before it sends anything did nothing: each call says so in its own words. */
import assert from 'node:assert/strict';
import { Farebox, FareboxConsumer, type FareboxError } from '@farebox/client';
import { raised } from './scripted-service.ts';

// Nothing listens there.
const baseUrl = 'http://127.0.0.1:1';
const farebox = new Farebox({ secretKey: 'fare_sk_live_x', baseUrl });
const consumer = new FareboxConsumer({ consumerKey: 'fare_ck_live_x', baseUrl });
const apiKey = 'fare_ck_live_x';
const tool = 'search';
const tools = [tool];
const chargeId = 'chg_1';
const amount = Number.NaN;
const idempotencyKey = '';
const budget = { name: 'agent', limit: amount };

const UNSENT: Record<
  Exclude<FareboxError['outcome'], 'unknown' | 'not_signed'>,
  Record<string, () => Promise<unknown>>
> = {
  not_charged: {
    'a charge of no amount': () => farebox.charge({ apiKey, tool, amount }),
    'a charge under no key': () => farebox.charge({ apiKey, tool, idempotencyKey }),
    'a capture of no amount': () => farebox.holds.capture({ holdId: 'hld_1', amount }),
    'a capture under no key': () => farebox.holds.capture({ holdId: 'hld_1', idempotencyKey }),
  },
  not_refunded: {
    'a refund of no charge': () => farebox.refund({ chargeId: '' }),
    'a refund of no amount': () => farebox.refund({ chargeId, amount }),
    'a refund under no key': () => farebox.refund({ chargeId, idempotencyKey }),
  },
  not_held: {
    'a hold for nobody': () => farebox.holds.place({ apiKey: '', tool, amount: 1 }),
    'a hold of no amount': () => farebox.holds.place({ apiKey, tool, amount }),
    'a hold under no key': () => farebox.holds.place({ apiKey, tool, amount: 1, idempotencyKey }),
    'a lease for nobody': () => farebox.lease({ apiKey: '', tools, amount: 1 }),
    'a lease of no amount': () => farebox.leases.take({ apiKey, tools, amount }),
  },
  not_done: {
    'a batch of no amount': () => farebox.batch([{ apiKey, tool, amount }]),
    'a batch under no key': () => farebox.batch([{ apiKey, tool, idempotencyKey }]),
    'a top-up of no amount': () => consumer.topUp({ amount }),
    'a top-up under no key': () => consumer.topUp({ amount: 5, idempotencyKey }),
    'a checkout of no amount': () => consumer.checkout({ amount }),
    'a budget of no amount': () => consumer.budgets.create(budget),
    'a change of a budget to no amount': () => consumer.budgets.update('bdg_1', budget),
    'a key under no key': () => consumer.budgets.createKey('bdg_1', { idempotencyKey }),
    'a question about no amount': () => farebox.approvals.ask({ apiKey, tool, amount }),
    'an answer of no amount': () =>
      consumer.approvals.decide('apr_1', { decision: 'top_up', amount }),
    'a tool of no price': () => farebox.tools.create({ name: tool, price: amount }),
    'a change of a tool to no price': () => farebox.tools.update('tool_1', { price: amount }),
    'a threshold of no amount': () => farebox.lowBalance.update({ threshold: amount }),
  },
};

/** Keyed by the `param` that the service gives for the same mistake. */
const MALFORMED: Record<string, () => Promise<unknown>> = {
  amount: () => farebox.charge({ apiKey, tool, amount }),
  limit: () => consumer.budgets.create(budget),
  'window.limit': () => consumer.budgets.update('bdg_1', { window: { per: 'day', limit: amount } }),
  maxPerCall: () => consumer.budgets.update('bdg_1', { maxPerCall: amount }),
  maxLease: () => consumer.budgets.update('bdg_1', { maxLease: amount }),
  price: () => farebox.tools.update('tool_1', { price: amount }),
  threshold: () => farebox.lowBalance.update({ threshold: amount }),
  'tools.1.price': () =>
    farebox.leases.take({ apiKey, tools: [tool, { name: tool, price: amount }], amount: 1 }),
  'entries.1.amount': () =>
    farebox.leases.settle({
      leaseId: 'lse_1',
      fence: 1,
      entries: [1, amount].map((each, n) => ({ sequence: n + 1, tool, amount: each })),
    }),
  'charges.1.amount': () =>
    farebox.batch([
      { apiKey, tool, amount: 1 },
      { apiKey, tool, amount },
    ]),
  'charges.1.idempotencyKey': () =>
    farebox.batch([
      { apiKey, tool, amount: 1 },
      { apiKey, tool, idempotencyKey },
    ]),
};

describe('client: what is not sent', () => {
  for (const [param, ask] of Object.entries(MALFORMED)) {
    it(`names what is malformed: ${param}`, async () => {
      assert.equal((await raised(ask())).param, param);
    });
  }

  it('names the limit with which an owner raises a budget', async () => {
    const decided = consumer.approvals.decide('apr_1', { decision: 'raise', limit: amount });
    assert.equal((await raised(decided)).param, 'limit');
  });

  for (const [outcome, calls] of Object.entries(UNSENT)) {
    for (const [name, ask] of Object.entries(calls)) {
      it(`${name} has the outcome ${outcome}`, async () => {
        const error = await raised(ask());
        assert.match(error.code, /^invalid_(amount|api_key|idempotency_key)$|^not_found$/);
        assert.equal(error.outcome, outcome);
      });
    }
  }
});
