/**
 * The client has a method for every operation that a consumer key or secret key may call: a new route fails
 * this test until it has one, or is among those left out.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Farebox, FareboxConsumer, type CallOptions, type List } from '@farebox/client';
import { raised } from './scripted-service.ts';

interface Operation {
  readonly operationId: string;
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly parameters?: readonly { readonly name: string }[];
}

interface Found {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly isPaged: boolean;
}

const document = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../docs/openapi.json'), 'utf8'),
) as { paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> };

const OPERATIONS: readonly Found[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods)
    .filter(([, { security }]) =>
      security.some((by) => 'consumerKey' in by || 'developerKey' in by),
    )
    .map(([method, { operationId: id, parameters = [] }]) => {
      const isPaged = parameters.some(({ name }) => name === 'cursor');
      return { id, method: method.toUpperCase(), path, isPaged };
    }),
);

/** Why the client has no method for them. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  exportCharges: 'a file for people; `charges.list()` has the same rows',
  exportUsage: 'a file for people; `charges.list()` has the same rows',
  exportEarnings: 'a file for people; `earnings()` has the same sums',
  exportBudgetUsage: 'a file for people; `budgets.usage()` has the same sums',
  exportStatement: 'a file for people; `statement()` has the same sums',
  streamEarnings: 'server-sent events for pages; `earnings()` has the same sums',
};

/** Counts, sums and keys: no records that grow in number. */
const NOT_PAGED = ['listBudgetRefusals', 'listReceiptKeys', 'listRefusals', 'listUsageByDay'];

/** Figures have the name of what they tell. */
const FIGURES = new Set([
  'balance',
  'budgets.refusals',
  'budgets.usage',
  'earnings',
  'refusals',
  'statement',
  'usageByDay',
  'verifyReceipt',
]);

type Client = { readonly farebox: Farebox; readonly consumer: FareboxConsumer };
type Call = (client: Client, options?: CallOptions) => Promise<unknown> | List<unknown, unknown>;

const RECEIPT = `hmac_sha256.1.e30.${'A'.repeat(43)}`;
const charge = { apiKey: 'fare_ck_live_x', tool: 'search', amount: 1 };

const METHODS: Readonly<Record<string, Call>> = {
  createCharge: ({ farebox }, o) => farebox.charge(charge, o),
  createChargeBatch: ({ farebox }, o) => farebox.batch([charge], o),
  listCharges: ({ farebox }, o) => farebox.charges.list({}, o),
  getCharge: ({ farebox }, o) => farebox.charges.get('x', o),
  quoteCharge: ({ farebox }, o) => farebox.quote({ tool: 'x' }, o),
  refundCharge: ({ farebox }, o) => farebox.refund({ chargeId: 'chg_0' }, o),
  createHold: ({ farebox }, o) => farebox.holds.place(charge, o),
  listHolds: ({ farebox }, o) => farebox.holds.list({}, o),
  'listHolds of a consumer': ({ consumer }, o) => consumer.holds.list({}, o),
  getHold: ({ farebox }, o) => farebox.holds.get('x', o),
  'getHold of a consumer': ({ consumer }, o) => consumer.holds.get('x', o),
  captureHold: ({ farebox }, o) => farebox.holds.capture({ holdId: 'x' }, o),
  extendHold: ({ farebox }, o) => farebox.holds.extend({ holdId: 'x', expiresIn: 60 }, o),
  releaseHold: ({ farebox }, o) => farebox.holds.release({ holdId: 'x' }, o),
  createLease: ({ farebox }, o) =>
    farebox.leases.take({ apiKey: 'fare_ck_live_x', tools: ['search'], amount: 1 }, o),
  listLeases: ({ farebox }, o) => farebox.leases.list({}, o),
  getLease: ({ farebox }, o) => farebox.leases.get('x', o),
  settleLease: ({ farebox }, o) =>
    farebox.leases.settle({ leaseId: 'x', fence: 1, entries: [] }, o),
  renewLease: ({ farebox }, o) => farebox.leases.renew({ leaseId: 'x', fence: 1 }, o),
  releaseLease: ({ farebox }, o) => farebox.leases.release({ leaseId: 'x' }, o),
  verifyReceipt: ({ consumer }, o) => consumer.verifyReceipt(RECEIPT, o),
  createPublicReceipt: ({ farebox }, o) => farebox.publicReceipt(RECEIPT, o),
  'createPublicReceipt of a consumer': ({ consumer }, o) => consumer.publicReceipt(RECEIPT, o),
  // Fetched once for all receipts, so it has no options of its own.
  listReceiptKeys: ({ farebox }) => farebox.verifyReceipt(RECEIPT),
  getBalance: ({ consumer }, o) => consumer.balance(o),
  listUsage: ({ consumer }, o) => consumer.charges.list({}, o),
  getUsageCharge: ({ consumer }, o) => consumer.charges.get('x', o),
  listUsageByDay: ({ consumer }, o) => consumer.usageByDay({ from: '2026-11-01' }, o),
  createTopUp: ({ consumer }, o) => consumer.topUp({ amount: 5 }, o),
  listTopUps: ({ consumer }, o) => consumer.topUps.list({}, o),
  getTopUp: ({ consumer }, o) => consumer.topUps.get('x', o),
  createCheckout: ({ consumer }, o) => consumer.checkout({ amount: 5 }, o),
  quoteTopUp: ({ consumer }, o) => consumer.topUps.quote({ amount: 5 }, o),
  createApproval: ({ farebox }, o) => farebox.approvals.ask(charge, o),
  'createApproval of a consumer': ({ consumer }, o) =>
    consumer.approvals.ask({ developerId: 'dev_0', tool: 'search' }, o),
  listApprovals: ({ consumer }, o) => consumer.approvals.list({}, o),
  getApproval: ({ farebox }, o) => farebox.approvals.get('x', o),
  'getApproval of a consumer': ({ consumer }, o) => consumer.approvals.get('x', o),
  decideApproval: ({ consumer }, o) => consumer.approvals.decide('x', { decision: 'once' }, o),
  createBudget: ({ consumer }, o) => consumer.budgets.create({ name: 'x' }, o),
  listBudgets: ({ consumer }, o) => consumer.budgets.list({}, o),
  getBudget: ({ consumer }, o) => consumer.budgets.get('x', o),
  updateBudget: ({ consumer }, o) => consumer.budgets.update('x', {}, o),
  closeBudget: ({ consumer }, o) => consumer.budgets.close('x', {}, o),
  getBudgetUsage: ({ consumer }, o) => consumer.budgets.usage('x', {}, o),
  listBudgetRefusals: ({ consumer }, o) => consumer.budgets.refusals('x', {}, o),
  createSpendKey: ({ consumer }, o) => consumer.budgets.createKey('x', {}, o),
  listSpendKeys: ({ consumer }, o) => consumer.budgets.listKeys('x', {}, o),
  rollKey: ({ consumer }, o) => consumer.budgets.rollKey('x', {}, o),
  revokeKey: ({ consumer }, o) => consumer.budgets.revokeKey('x', {}, o),
  getEarnings: ({ farebox }, o) => farebox.earnings({}, o),
  createTool: ({ farebox }, o) => farebox.tools.create({ name: 'x' }, o),
  listTools: ({ farebox }, o) => farebox.tools.list({}, o),
  getTool: ({ farebox }, o) => farebox.tools.get('x', o),
  getRateCard: ({ farebox }, o) => farebox.tools.getCard('x', 1, o),
  updateTool: ({ farebox }, o) => farebox.tools.update('x', {}, o),
  listDeveloperTopUps: ({ farebox }, o) => farebox.topUps.list({}, o),
  listRefusals: ({ farebox }, o) => farebox.refusals({}, o),
  getDeveloper: ({ farebox }, o) => farebox.developer.get(o),
  updateDeveloper: ({ farebox }, o) => farebox.developer.update({}, o),
  getLowBalance: ({ farebox }, o) => farebox.lowBalance.get(o),
  updateLowBalance: ({ farebox }, o) => farebox.lowBalance.update({ threshold: 5 }, o),
  createWebhookEndpoint: ({ farebox }, o) => farebox.webhookEndpoints.create({ url: 'x' }, o),
  listWebhookEndpoints: ({ farebox }, o) => farebox.webhookEndpoints.list({}, o),
  getWebhookEndpoint: ({ farebox }, o) => farebox.webhookEndpoints.get('x', o),
  updateWebhookEndpoint: ({ farebox }, o) => farebox.webhookEndpoints.update('x', {}, o),
  deleteWebhookEndpoint: ({ farebox }, o) => farebox.webhookEndpoints.delete('x', o),
  rollWebhookSecret: ({ farebox }, o) => farebox.webhookEndpoints.rollSecret('x', {}, o),
  testWebhookEndpoint: ({ farebox }, o) => farebox.webhookEndpoints.test('x', o),
  listDeliveries: ({ farebox }, o) => farebox.webhookEndpoints.listDeliveries('x', {}, o),
  redeliverEvent: ({ farebox }, o) => farebox.webhookEndpoints.redeliver('x', 'y', o),
  getStatement: ({ farebox }, o) => farebox.statement('2026-11', o),
  'getStatement of a consumer': ({ consumer }, o) => consumer.statement('2026-11', o),
};

interface Sent {
  readonly method: string;
  readonly url: URL;
}

/** Clients whose requests `answer` answers. */
function clients(answer: (sent: Sent) => object) {
  const sent: Sent[] = [];
  const fetch = async (url: string, { method = 'GET' }: RequestInit) => {
    const request = { method, url: new URL(url) };
    sent.push(request);
    return Response.json(answer(request), { headers: { 'x-request-id': `req_${sent.length}` } });
  };
  const options = { baseUrl: 'http://farebox.test', fetch };
  const farebox = new Farebox({ ...options, secretKey: 'fare_sk_live_x', coalesce: false });
  const consumer = new FareboxConsumer({ ...options, consumerKey: 'fare_ck_live_x' });
  return { farebox, consumer, sent };
}

/** Resolves when the call has ended, whether or not it understood the answer. */
async function make(call: Call, client: Client): Promise<void> {
  const made = call(client);
  await ('page' in made ? made.page() : made).catch(() => {});
}

describe('client: the whole API', () => {
  it('has a method for each operation of consumers and developers, or a reason for none', () => {
    const covered = new Set(Object.keys(METHODS).map((name) => name.split(' ')[0]));
    const accounted = new Set([...covered, ...Object.keys(LEFT_OUT)]);
    const expected = new Set(OPERATIONS.map(({ id }) => id));
    assert.deepEqual(accounted, expected);
  });

  it('pages every list of records', () => {
    const unpaged = OPERATIONS.filter(({ id, isPaged }) => id.startsWith('list') && !isPaged);
    assert.deepEqual(unpaged.map(({ id }) => id).toSorted(), NOT_PAGED);
  });

  it('names alike what lists records, reads one and changes one', () => {
    const named = Object.entries(METHODS).flatMap(([operation, call]) => {
      const verb = /^(?:list|get|update)/.exec(operation)?.[0];
      const [, path = ''] = /=> \w+\.([\w.]+)\(/.exec(call.toString()) ?? [];
      return verb && !FIGURES.has(path) ? [{ operation, path, verb }] : [];
    });
    assert.deepEqual(
      named.filter(({ path, verb }) => path.split('.').at(-1)?.startsWith(verb) !== true),
      [],
    );
  });

  for (const [name, call] of Object.entries(METHODS)) {
    it(`sends ${name}, and keeps its request id`, async () => {
      const client = clients(() => ({}));
      await make(call, client);
      const operation = OPERATIONS.find(({ id }) => id === name.split(' ')[0]);
      const pattern = new RegExp(`^${operation?.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`);
      const { method, url } = client.sent[0] ?? assert.fail('nothing was sent');
      assert.equal(method, operation?.method);
      assert.match(url.pathname, pattern);
      const ids = [client.farebox.lastRequestId, client.consumer.lastRequestId];
      assert.ok(ids.includes(`req_${client.sent.length}`), ids.join());
    });

    if (name === 'listReceiptKeys') continue;
    it(`sends no ${name} when its signal is aborted`, async () => {
      const client = clients(() => ({}));
      const made = call(client, { signal: AbortSignal.abort(), timeoutMs: 1_000 });
      const error = await raised('page' in made ? made.page() : made);
      assert.equal(error.code, 'aborted');
      assert.deepEqual(client.sent, []);
    });

    it(`sends no ${name} with an option that it does not have`, async () => {
      const client = clients(() => ({}));
      const made = call(client, { idempotencyKey: 'job-7' } as never);
      const message = /idempotencyKey is not a member of .* the argument before it/;
      await assert.rejects('page' in made ? made.page() : made, { name: 'TypeError', message });
      assert.deepEqual(client.sent, []);
    });
  }

  for (const { id } of OPERATIONS.filter((each) => each.isPaged)) {
    const call = METHODS[id] ?? assert.fail(id);
    it(`lists ${id} item by item, across pages`, async () => {
      const client = clients(({ url }) => {
        const isFirst = url.searchParams.get('cursor') === null;
        const rows = [{ id: isFirst ? 'first' : 'second' }];
        // The list's name in the reply: one for each kind of list.
        const names =
          'charges holds topUps budgets keys deliveries leases approvals usage tools webhookEndpoints'.split(
            ' ',
          );
        const lists = Object.fromEntries(names.map((each) => [each, rows]));
        return { ...lists, hasMore: isFirst, nextCursor: isFirst ? 'next' : null };
      });
      const items: unknown[] = [];
      for await (const item of call(client) as List<unknown, unknown>) items.push(item);
      assert.deepEqual(items, [{ id: 'first' }, { id: 'second' }]);
      assert.equal(client.sent[1]?.url.searchParams.get('cursor'), 'next');
    });
  }
});
