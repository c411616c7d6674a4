/** Requests, filters and options whose members are getters or inherited, as those of a class are: each member counts. */
import assert from 'node:assert/strict';
import { Farebox, FareboxConsumer } from '@farebox/client';
import { paidTool } from '@farebox/client/mcp';
import { leaseScript } from './lease-script.ts';
import { ScriptedService, answer, charged, raised, refusal, silence } from './scripted-service.ts';

const secretKey = 'fare_sk_test_x';
const apiKey = 'fare_ck_test_x';
const idempotencyKey = 'a-key';
const metadata = { order: '7' };
const range = { from: '2026-11-01T00:00:00Z', to: '2026-11-02T00:00:00Z' };
const page = { limit: 7, cursor: 'next' };
const budget = {
  name: 'agent',
  limit: 5,
  maxPerCall: 1,
  maxLease: 2,
  allowLeases: true,
  tools: ['search'],
  developers: ['dev_1'],
  approveDevelopers: true,
  approvedDevelopers: ['dev_2'],
  mayDelegate: false,
  expiresAt: range.to,
  metadata,
};

/** What has the same members, by getters of its class. */
function like<const Given extends object>(given: Given): Given {
  const getters = Object.entries(given).map(([name, value]: [string, unknown]) => [
    name,
    { get: () => value },
  ]);
  const prototype: object = Object.defineProperties(
    {},
    Object.fromEntries(getters) as PropertyDescriptorMap,
  );
  return Object.create(prototype) as Given;
}

type Clients = { readonly farebox: Farebox; readonly consumer: FareboxConsumer };
type Ask = (clients: Clients, as: <const Given extends object>(given: Given) => Given) => unknown;

const ASKS: Readonly<Record<string, Ask>> = {
  charge: ({ farebox }, as) =>
    farebox.charge(as({ apiKey, tool: 'search', amount: 0.1, metadata, idempotencyKey })),
  'charge by a map of prices': ({ farebox }, as) =>
    farebox
      .withPrices({ search: 0.2 })
      .charge(as({ apiKey, tool: 'search', metadata, idempotencyKey })),
  batch: ({ farebox }, as) =>
    farebox.batch([
      as({ apiKey, tool: 'search', amount: 0.1, metadata, idempotencyKey }),
      as({ op: 'hold', apiKey, tool: 'search', amount: 1, expiresIn: 60, idempotencyKey }),
      as({ op: 'capture', holdId: 'hld_1', amount: 1, final: true, over: 'cap', idempotencyKey }),
      as({ op: 'release', holdId: 'hld_2', idempotencyKey }),
    ]),
  'charge of units': ({ farebox }, as) =>
    farebox.charge(as({ apiKey, tool: 'search', units: { input: 7 }, idempotencyKey })),
  'batch of units': ({ farebox }, as) =>
    farebox.batch([
      as({ apiKey, tool: 'search', units: { input: 7 }, idempotencyKey }),
      as({ op: 'hold', apiKey, tool: 'search', units: { input: 7 }, idempotencyKey }),
      as({ op: 'capture', holdId: 'hld_1', units: { input: 7 }, idempotencyKey }),
    ]),
  'hold of units': ({ farebox }, as) =>
    farebox.holds.place(as({ apiKey, tool: 'search', units: { input: 7 }, idempotencyKey })),
  'capture of units': ({ farebox }, as) =>
    farebox.holds.capture(as({ holdId: 'hld_1', units: { input: 7 }, idempotencyKey })),
  'quote of a charge': ({ farebox }, as) =>
    farebox.quote(as({ tool: 'search', units: { input: 7 } })),
  refund: ({ farebox }, as) =>
    farebox.refund(as({ chargeId: 'chg_1', amount: 0.1, idempotencyKey })),
  hold: ({ farebox }, as) =>
    farebox.holds.place(
      as({ apiKey, tool: 'search', amount: 1, expiresIn: 60, metadata, idempotencyKey }),
    ),
  capture: ({ farebox }, as) =>
    farebox.holds.capture(
      as({ holdId: 'hld_1', amount: 0.1, final: false, over: 'cap', metadata, idempotencyKey }),
    ),
  extension: ({ farebox }, as) =>
    farebox.holds.extend(as({ holdId: 'hld_1', expiresIn: 60, idempotencyKey })),
  release: ({ farebox }, as) => farebox.holds.release(as({ holdId: 'hld_1', idempotencyKey })),
  lease: ({ farebox }, as) =>
    farebox.leases.take(
      as({
        apiKey,
        tools: [as({ name: 'search', price: 1 })],
        amount: 5,
        expiresIn: 60,
        idempotencyKey,
      }),
    ),
  'open lease': ({ farebox }, as) =>
    // The key is the client's own.
    farebox.lease(as({ apiKey, tools: ['search'], amount: 5, expiresIn: 60 })),
  settlement: ({ farebox }, as) =>
    farebox.leases.settle(
      as({
        leaseId: 'lse_1',
        fence: 2,
        final: true,
        entries: [as({ sequence: 1, tool: 'search', amount: 0.1, metadata })],
      }),
    ),
  renewal: ({ farebox }, as) =>
    farebox.leases.renew(as({ leaseId: 'lse_1', fence: 2, expiresIn: 60, idempotencyKey })),
  tool: ({ farebox }, as) =>
    farebox.tools.create(as({ name: 'search', description: 'finds', price: 1, card: { a: 1 } })),
  'change of a tool': ({ farebox }, as) =>
    farebox.tools.update(
      'tool_1',
      as({ description: 'finds', price: 1, card: { a: 1 }, archived: true }),
    ),
  developer: ({ farebox }, as) =>
    farebox.developer.update(as({ returnUrl: 'https://example.com' })),
  'low balance': ({ farebox }, as) => farebox.lowBalance.update(as({ threshold: 5 })),
  endpoint: ({ farebox }, as) =>
    farebox.webhookEndpoints.create(
      as({
        url: 'https://example.com',
        types: ['balance.low'],
        description: 'x',
        idempotencyKey,
      }),
    ),
  'change of an endpoint': ({ farebox }, as) =>
    farebox.webhookEndpoints.update(
      'we_1',
      as({
        url: 'https://example.com',
        types: ['balance.low'],
        description: 'x',
        enabled: false,
      }),
    ),
  secret: ({ farebox }, as) =>
    farebox.webhookEndpoints.rollSecret('we_1', as({ overlapSeconds: 60, idempotencyKey })),
  question: ({ farebox }, as) =>
    farebox.approvals.ask(
      as({ apiKey, developerId: 'dev_1', tool: 'search', amount: 1, reason: 'x', expiresIn: 60 }),
    ),
  decision: ({ consumer }, as) =>
    consumer.approvals.decide(
      'apr_1',
      as({ decision: 'top_up', limit: 5, amount: 6, idempotencyKey }),
    ),
  'top-up': ({ consumer }, as) => consumer.topUp(as({ amount: 5, idempotencyKey })),
  checkout: ({ consumer }, as) =>
    consumer.checkout(as({ amount: 5, saveCard: true, idempotencyKey })),
  budget: ({ consumer }, as) =>
    consumer.budgets.create(
      as({
        ...budget,
        parentId: 'bdg_1',
        window: as({ per: 'day', limit: 1 }),
        idempotencyKey,
      }),
    ),
  'change of a budget': ({ consumer }, as) =>
    consumer.budgets.update('bdg_1', as({ ...budget, window: as({ per: 'day', limit: 1 }) })),
  'closed budget': ({ consumer }, as) =>
    consumer.budgets.close('bdg_1', as({ releaseHolds: true })),
  key: ({ consumer }, as) =>
    consumer.budgets.createKey('bdg_1', as({ name: 'x', expiresAt: range.to, idempotencyKey })),
  'rolled key': ({ consumer }, as) =>
    consumer.budgets.rollKey('key_1', as({ overlapSeconds: 60, idempotencyKey })),
  'revoked key': ({ consumer }, as) =>
    consumer.budgets.revokeKey('key_1', as({ releaseHolds: true })),
  'list of charges': ({ farebox }, as) =>
    farebox.charges.list(as({ tool: 'search', consumerId: 'cns_1', ...range, ...page })).page(),
  'list of usage': ({ consumer }, as) =>
    consumer.charges.list(as({ tool: 'search', ...range, ...page })).page(),
  'list of holds': ({ farebox }, as) => farebox.holds.list(as({ status: 'open', ...page })).page(),
  'list of tools': ({ farebox }, as) =>
    farebox.tools.list(as({ archived: true, name: 'search', ...page })).page(),
  'list of leases': ({ farebox }, as) => farebox.leases.list(as(page)).page(),
  'list of deliveries': ({ farebox }, as) =>
    farebox.webhookEndpoints.listDeliveries('we_1', as({ status: 'failed', ...page })).page(),
  'list of budgets': ({ consumer }, as) =>
    consumer.budgets.list(as({ parentId: 'bdg_1', ...page })).page(),
  'list of a budget’s usage': ({ consumer }, as) =>
    consumer.budgets.usage('bdg_1', as({ by: 'tool', ...range, ...page })).page(),
  'list of a consumer’s holds': ({ consumer }, as) =>
    consumer.holds.list(as({ status: 'open', ...page })).page(),
  'list of approvals': ({ consumer }, as) =>
    consumer.approvals.list(as({ status: 'pending', budgetId: 'bdg_1', ...page })).page(),
  earnings: ({ farebox }, as) =>
    farebox.earnings(as({ tool: 'search', ...range, interval: 'day' })),
  refusals: ({ farebox }, as) => farebox.refusals(as({ hours: 3 })),
  'refusals of a budget': ({ consumer }, as) =>
    consumer.budgets.refusals('bdg_1', as({ hours: 3 })),
  'usage by day': ({ consumer }, as) => consumer.usageByDay(as({ from: '2026-11-01' })),
  quote: ({ consumer }, as) => consumer.topUps.quote(as({ amount: 5 })),
};

/** What a call sends. */
async function sentBy(ask: Ask, as: <const Given extends object>(given: Given) => Given) {
  await using api = await ScriptedService.start(refusal(400, 'invalid_request'));
  const farebox = new Farebox(as({ secretKey, baseUrl: api.url, maxRetries: 0 }));
  const consumer = new FareboxConsumer({ consumerKey: apiKey, baseUrl: api.url });
  await raised(ask({ farebox, consumer }, as) as Promise<unknown>);
  return api.seen.map(({ method, path, headers, body }) => {
    const [at, query] = (path ?? '').split('?');
    // Its key may be random.
    const key = at === '/v1/leases' ? undefined : headers['idempotency-key'];
    return [method, at, Object.fromEntries(new URLSearchParams(query)), key, body];
  });
}

describe('client: members that are getters of a class', () => {
  for (const [what, ask] of Object.entries(ASKS)) {
    it(`are sent as others are: ${what}`, async () => {
      const sent = await sentBy(ask, (given) => given);
      assert.equal(sent.length, 1);
      assert.deepEqual(await sentBy(ask, like), sent);
    });
  }

  it('are read from the settings of a client', async () => {
    await using api = await ScriptedService.start(refusal(503, 'service_unavailable'), charged);
    const settings = like({ secretKey, baseUrl: api.url, maxRetries: 0, coalesce: false });
    await raised(new Farebox(settings).charge({ apiKey, tool: 'search' }));
    assert.equal(api.seen.length, 1);
  });

  it('are read from the options of a paid call: its cost is charged, not all that is held', async () => {
    const held = answer(201, { id: 'hld_1', status: 'open' });
    await using api = await ScriptedService.start(held, charged);
    const farebox = new Farebox({ secretKey, baseUrl: api.url });
    const options = like({ tool: 'search', max: 5, settle: () => 0.1 });
    const tool = paidTool(farebox, options, () => ({ content: [] })) as (
      ...input: object[]
    ) => Promise<unknown>;
    const headers = new Headers({ 'x-service-key': apiKey });
    await tool({}, { requestInfo: { headers } });
    assert.partialDeepStrictEqual(api.seen[1]?.body, { amount: 0.1 });
  });
});

describe('client: an AbortController as the options of a call', () => {
  const clientsOf = ({ url: baseUrl }: { url: string }, coalesce = true) => ({
    farebox: new Farebox({ secretKey, baseUrl, maxRetries: 2, coalesce }),
    consumer: new FareboxConsumer({ consumerKey: apiKey, baseUrl, maxRetries: 0 }),
  });
  const search = { apiKey, tool: 'search', amount: 1 };

  for (const coalesce of [true, false]) {
    it(`sends no charge when it was aborted before, ${coalesce ? 'together' : 'alone'}`, async () => {
      await using api = await ScriptedService.start(charged);
      const caller = new AbortController();
      caller.abort();
      const error = await raised(clientsOf(api, coalesce).farebox.charge(search, caller));
      assert.deepEqual([error.code, error.outcome], ['aborted', 'not_charged']);
      assert.deepEqual(api.seen, []);
    });
  }

  const calls: Readonly<
    Record<string, (clients: Clients, caller: AbortController) => Promise<unknown>>
  > = {
    'a top-up': ({ consumer }, caller) => consumer.topUp({ amount: 5 }, caller),
    'a decision to top up': ({ consumer }, caller) =>
      consumer.approvals.decide('apr_1', { decision: 'top_up' }, caller),
    'a wait': ({ farebox }, caller) => farebox.approvals.wait('apr_1', caller),
    'a refund': ({ farebox }, caller) => farebox.refund({ chargeId: 'chg_1' }, caller),
  };
  for (const [what, call] of Object.entries(calls)) {
    it(`ends ${what}`, async () => {
      const caller = new AbortController();
      await using api = await ScriptedService.start((...asked) => {
        caller.abort();
        silence(...asked);
      });
      assert.equal((await raised(call(clientsOf(api), caller))).code, 'aborted');
    });
  }

  it('works as a fetch Request does', async () => {
    await using api = await ScriptedService.start(charged);
    const request = new Request('http://x/', { signal: AbortSignal.abort() });
    const error = await raised(clientsOf(api).farebox.charge(search, request));
    assert.deepEqual([error.code, api.seen], ['aborted', []]);
  });
});

describe('client: a filter', () => {
  it('is copied by list(): what is changed later belongs to the next list', async () => {
    const none = answer(200, { charges: [], hasMore: false, nextCursor: null });
    await using api = await ScriptedService.start(none);
    const { charges } = new Farebox({ secretKey, baseUrl: api.url });
    const filter = { tool: 'a' };
    const first = charges.list(filter);
    filter.tool = 'b';
    const second = charges.list(filter);
    await first.page();
    await second.page();
    assert.deepEqual(
      api.seen.map(({ path }) => path),
      ['/v1/charges?tool=a', '/v1/charges?tool=b'],
    );
  });
});

describe('client: close() of a lease', () => {
  it('settles as the listener of an event, whose arguments are no options', async () => {
    await using api = await ScriptedService.start(leaseScript({}));
    const farebox = new Farebox({ secretKey, baseUrl: api.url });
    for (const given of [['SIGTERM', 15], [0], [null], [new Event('abort')]]) {
      const lease = await farebox.lease({ apiKey, tools: ['search'], amount: 1 });
      lease.charge({ tool: 'search' });
      const close = lease.close.bind(lease) as (...args: unknown[]) => Promise<unknown>;
      assert.deepEqual(await close(...given), { unsettled: [] });
    }
  });
});
