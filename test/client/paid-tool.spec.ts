/** Paid MCP tools against the API, in both generations of the SDK: paid when they answer, never when they fail. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Farebox, type FareboxOptions } from '@farebox/client';
import { paidTool, type ChargeMeta } from '@farebox/client/mcp';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { call as ask } from '../support/http.ts';
import { until } from '../support/stack.ts';
import { CuttingProxy } from './cutting-proxy.ts';
import { PaidBooks } from './paid-books.ts';
import { GENERATIONS } from './paid-servers.ts';

type Facts = Readonly<Record<string, unknown>>;

describe('client: paid MCP tools', () => {
  let api: TestApi;
  let account: TestAccount;
  let books: PaidBooks;

  before(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    account = await api.createAccount(10);
    books = new PaidBooks(api, account);
  });
  after(() => api?.stop());

  const client = (options: FareboxOptions = {}) =>
    new Farebox({ secretKey: account.developerKey, baseUrl: api.url, ...options });

  it('are refunded when they are canceled while they are captured', async () => {
    const user = new AbortController();
    const farebox = client({
      fetch: async (url, init) => {
        const response = await fetch(url, init);
        if (url.endsWith('/capture')) user.abort();
        return response;
      },
    });
    const tool = paidTool(farebox, { tool: 'search', price: '0.5' }, (_context: object) => ({
      content: [],
    }));
    const headers = new Headers({ 'x-service-key': account.consumerKey });
    const result: object = await tool({ requestInfo: { headers }, signal: user.signal });
    assert.partialDeepStrictEqual(result, { _meta: { 'farebox/error': { code: 'aborted' } } });
    assert.deepEqual([(await books.charges()).length, await books.balance()], [1, 10]);
  });

  for (const [generation, { listen, connect }] of Object.entries(GENERATIONS)) {
    describe(`by ${generation}`, () => {
      let http: Server;

      async function open(options?: FareboxOptions): Promise<void> {
        http = createServer(listen(client(options))).listen(0, '127.0.0.1');
        await once(http, 'listening');
      }
      afterEach(() => {
        http?.closeAllConnections();
        http?.close();
      });

      async function call(
        name: string,
        headers: Record<string, string> = { 'x-service-key': account.consumerKey },
      ) {
        const url = new URL(`http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`);
        const caller = new Client({ name: 'test', version: '1.0.0' });
        await caller.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
        const result = await caller.callTool({ name, arguments: { query: 'otters' } });
        const { _meta: meta } = result;
        await caller.close();
        const [block] = result.content;
        return {
          isError: result.isError === true,
          text: block?.type === 'text' ? block.text : '',
          error: meta?.['farebox/error'] as Facts | undefined,
          structured: result.structuredContent,
          charge: meta?.['farebox/charge'] as ChargeMeta | undefined,
        };
      }

      it('are paid once when they answer, with the receipt beside the result', async () => {
        await open();
        const { isError, text, charge } = await call('search');
        assert.deepEqual([isError, text], [false, 'otters']);
        const [recorded, ...others] = await books.charges();
        assert.deepEqual(others, []);
        const { id, receipt } = recorded ?? assert.fail('not paid');
        assert.deepEqual(charge, { id, amount: 0.5, balance: 9.5, receipt });
      });

      it('may have no arguments, a price by them, or one by their result', async () => {
        await open();
        assert.equal((await call('now')).charge?.amount, 0.25);
        assert.equal((await call('length')).charge?.amount, 0.01);
        assert.equal((await call('letters')).charge?.amount, 0.06);
        assert.equal(await books.balance(), 9.68);
        assert.deepEqual(await books.holds(), ['captured', 'captured', 'captured']);
      });

      for (const name of ['fails', 'throws', 'silent', 'late', 'endless', 'empty', 'word', 'big']) {
        it(`are not paid when they fail: "${name}"`, async () => {
          await open();
          const { isError, charge } = await call(name);
          assert.deepEqual([isError, charge], [true, undefined]);
          assert.deepEqual([await books.charges(), await books.holds()], [[], ['released']]);
          assert.equal(await books.balance(), 10);
        });
      }

      it('take the key of the environment on stdio, and are not paid when they are canceled', async () => {
        const { SERVICE_KEY: before } = process.env;
        process.env['SERVICE_KEY'] = account.consumerKey;
        try {
          const caller = new Client({ name: 'test', version: '1.0.0' });
          await caller.connect(await connect(client()));
          await caller.callTool({ name: 'now' });
          assert.equal(await books.balance(), 9.75);
          const user = new AbortController();
          const called = caller.callTool({ name: 'waits' }, { signal: user.signal });
          await until(async () => (await books.holds())[0] === 'open');
          user.abort();
          await assert.rejects(called);
          await until(async () => (await books.holds())[0] === 'released');
          assert.equal(await books.balance(), 9.75);
          await caller.close();
        } finally {
          if (before === undefined) delete process.env['SERVICE_KEY'];
          else process.env['SERVICE_KEY'] = before;
        }
      });

      it('tell the model what it takes when the balance is too low, as the API does', async () => {
        await open();
        const { consumerKey: apiKey } = await api.createAccount(0.2);
        const { isError, text, error, structured } = await call('search', {
          'x-service-key': apiKey,
        });
        assert.equal(isError, true);
        assert.deepEqual(structured, { error });
        assert.match(text, /costs \$0\.50 and the balance is \$0\.20\..*top up at http.*link=/);
        const body = { apiKey, tool: 'search', amount: 0.5 };
        const request = { key: account.developerKey, body };
        const direct = await ask(api, 'POST', '/v1/holds', request);
        const { requestId: _, topUpUrl: __, ...facts } = (direct.body as { error: Facts }).error;
        assert.partialDeepStrictEqual(error, facts);
        assert.partialDeepStrictEqual(error, { balance: 0.2, required: 0.5, shortfall: 0.3 });
        assert.match(String(error?.['topUpUrl']), /\/top-up\?link=/);
      });

      it('reach the model with a refusal though they have an output schema', async () => {
        await open();
        const { consumerKey } = await api.createAccount(1.5);
        const url = new URL(`http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`);
        const requestInit = { headers: { 'x-service-key': consumerKey } };
        const caller = new ClientV1({ name: 'test', version: '1.0.0' });
        await caller.connect(new TransportV1(url, { requestInit }));
        // From then on, this client compares structured content with the schema, that of errors too.
        await caller.listTools();
        const paid = await caller.callTool({ name: 'count' });
        const refused = await caller.callTool({ name: 'count' });
        await caller.close();
        assert.deepEqual(paid.structuredContent, { count: 3 });
        assert.equal(refused.isError, true);
        assert.match(JSON.stringify(refused.content), /Payment required.*top up at http/);
      });

      it('do not run without a key, and name the header', async () => {
        await open();
        const { isError, text, error } = await call('search', {});
        assert.equal(isError, true);
        assert.match(text, /X-Service-Key/);
        assert.match(text, /The user can make one at http:.*\/console\/budgets\./);
        assert.equal(error?.['code'], 'invalid_api_key');
        assert.deepEqual(await books.holds(), []);
      });

      it('name the page where a spend key is made when the key is not valid', async () => {
        await open();
        const { text, error } = await call('search', { 'x-service-key': 'fare_ck_live_x' });
        assert.match(
          text,
          /a Farebox spend key of the user; .*make one at http:.*\/console\/budgets\. Calling again/,
        );
        assert.match(String(error?.['keysUrl']), /\/console\/budgets$/);
      });

      it('show no caller what is wrong with the server’s own key', async () => {
        await open({ secretKey: `${account.developerKey}x` });
        const result = await call('search');
        assert.deepEqual([result.isError, result.error?.['code']], [true, 'billing_error']);
        assert.doesNotMatch(JSON.stringify(result), /secret/);
      });

      it('do not run when Farebox is away', async () => {
        await open({ baseUrl: 'http://127.0.0.1:9', maxRetries: 0 });
        const { text, error } = await call('search');
        assert.match(text, /Nothing was charged/);
        assert.partialDeepStrictEqual(error, { code: 'service_unavailable', outcome: 'not_held' });
      });

      it('give no result that could not be paid for', async () => {
        // The request for the hold and its answer pass, then nothing does.
        let chunks = 0;
        const fate = () => ((chunks += 1) > 2 ? ('before' as const) : undefined);
        await using proxy = await CuttingProxy.start(api.url, fate);
        await open({ baseUrl: proxy.url, maxRetries: 0 });
        const { isError, text, error } = await call('search');
        assert.equal(isError, true);
        assert.doesNotMatch(text, /otters/);
        assert.partialDeepStrictEqual(error, { code: 'billing_error', outcome: 'unknown' });
        assert.deepEqual(await books.charges(), []);
      });
    });
  }
});
