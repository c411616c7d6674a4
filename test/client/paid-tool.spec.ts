/** Paid MCP tools in both generations of the SDK: paid when they answer, never when they fail. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Farebox, type OnUnavailable } from '@farebox/client';
import { paidTool, type ChargeMeta } from '@farebox/client/mcp';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer as McpServerV1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { HoldingService, type Accident } from './holding-service.ts';
import { ScriptedService } from './scripted-service.ts';

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] });

/** The same tools for either SDK, registered the way its users do it. */
const GENERATIONS: Readonly<Record<string, (farebox: Farebox<OnUnavailable>) => RequestListener>> =
  {
    'version 1 of the SDK': (farebox) => (request, response) => {
      const server = new McpServerV1({ name: 'test', version: '1.0.0' });
      server.registerTool(
        'search',
        { inputSchema: { query: z.string() } },
        paidTool(farebox, { tool: 'search', price: '0.5' }, async ({ query }) => text(query)),
      );
      server.registerTool(
        'length',
        { inputSchema: { query: z.string() } },
        paidTool(
          farebox,
          { tool: 'length', max: 2, settle: ({ content }) => `0.0${content.length}` },
          ({ query }) => text(query),
        ),
      );
      server.registerTool(
        'now',
        {},
        paidTool(farebox, { tool: 'now', price: () => 0.25 }, async () => text('noon')),
      );
      server.registerTool(
        'fails',
        {},
        paidTool(farebox, { tool: 'fails', price: 1 }, () => ({ ...text('no'), isError: true })),
      );
      server.registerTool(
        'throws',
        {},
        paidTool(farebox, { tool: 'throws', price: 1 }, () => {
          throw new Error('broken');
        }),
      );
      const transport = new StreamableHTTPServerTransport({});
      void server.connect(transport).then(() => transport.handleRequest(request, response));
    },
    'version 2 of the SDK': (farebox) => {
      const create = () => {
        const server = new McpServer({ name: 'test', version: '1.0.0' });
        server.registerTool(
          'search',
          { inputSchema: z.object({ query: z.string() }) },
          paidTool(farebox, { tool: 'search', price: '0.5' }, async ({ query }) => text(query)),
        );
        server.registerTool(
          'length',
          { inputSchema: z.object({ query: z.string() }) },
          paidTool(farebox, { tool: 'length', max: 2, settle: () => '0.01' }, ({ query }) =>
            text(query),
          ),
        );
        server.registerTool(
          'now',
          {},
          paidTool(farebox, { tool: 'now', price: () => 0.25 }, async () => text('noon')),
        );
        server.registerTool(
          'fails',
          {},
          paidTool(farebox, { tool: 'fails', price: 1 }, () => ({ ...text('no'), isError: true })),
        );
        server.registerTool(
          'throws',
          {},
          paidTool(farebox, { tool: 'throws', price: 1 }, () => {
            throw new Error('broken');
          }),
        );
        return server;
      };
      return toNodeHandler(createMcpHandler(create)) as RequestListener;
    },
  };

for (const [generation, listen] of Object.entries(GENERATIONS)) {
  describe(`client: a paid tool, by ${generation}`, () => {
    let ledger: HoldingService;
    let service: ScriptedService;
    let http: ReturnType<typeof createServer>;
    const statuses = () => ledger.holds.map(({ status }) => status);

    beforeEach(async () => {
      ledger = new HoldingService();
      service = await ledger.start();
      const options = { secretKey: 'fare_sk_live_x', baseUrl: service.url, timeoutMs: 500 };
      http = createServer(listen(new Farebox(options))).listen(0, '127.0.0.1');
      await once(http, 'listening');
    });
    afterEach(async () => {
      http.closeAllConnections();
      http.close();
      await service.close();
    });

    async function call(
      name: string,
      headers: Record<string, string> = { 'x-service-key': 'key' },
    ) {
      const url = new URL(`http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`);
      const client = new Client({ name: 'test', version: '1.0.0' });
      await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
      const result = await client.callTool({ name, arguments: { query: 'otters' } });
      await client.close();
      const { _meta: meta } = result;
      const [block] = result.content;
      return {
        isError: result.isError === true,
        text: block?.type === 'text' ? block.text : '',
        error: (result.structuredContent as { error?: object } | undefined)?.error,
        charge: meta?.['farebox/charge'] as ChargeMeta | undefined,
      };
    }

    it('is paid once when it answers, with the receipt beside the result', async () => {
      const { isError, text, charge } = await call('search');
      assert.deepEqual([isError, text], [false, 'otters']);
      assert.deepEqual(charge, { id: 'chg_1', amount: 0.5, balance: 9.5, receipt: 'r.hld_1' });
      assert.deepEqual(ledger.charges, [{ holdId: 'hld_1', amount: 0.5 }]);
    });

    it('supports no arguments, a price by arguments, and a price by result', async () => {
      assert.equal((await call('now')).charge?.amount, 0.25);
      assert.equal((await call('length')).charge?.amount, 0.01);
      assert.equal(ledger.balance, 9.74);
    });

    for (const name of ['fails', 'throws']) {
      it(`is not paid when it ${name}`, async () => {
        const { isError, charge } = await call(name);
        assert.deepEqual([isError, charge], [true, undefined]);
        assert.deepEqual([ledger.charges, statuses(), ledger.balance], [[], ['released'], 10]);
      });
    }

    it('tells the model what is needed when the balance is too low', async () => {
      ledger.balance = 0.2;
      const { isError, text, error } = await call('search');
      assert.equal(isError, true);
      assert.match(text, /costs 0\.5 USD and the balance is 0\.2 USD.*top up at http:\/\/pay/);
      assert.partialDeepStrictEqual(error, { code: 'insufficient_balance', required: 0.5 });
    });

    it('does not run without a key, and names the header', async () => {
      const { isError, text, error } = await call('search', {});
      assert.equal(isError, true);
      assert.match(text, /X-Service-Key/);
      assert.partialDeepStrictEqual(error, { code: 'invalid_api_key' });
      assert.equal(ledger.seen.length, 0);
    });

    it('does not run while Farebox is unreachable', async () => {
      await service.close();
      const { text, error } = await call('search');
      assert.match(text, /Nothing was charged/);
      assert.partialDeepStrictEqual(error, { code: 'service_unavailable', outcome: 'not_held' });
    });

    it('hides faults of the server’s own key from callers', async () => {
      ledger.accident = () => undefined;
      await service.close();
      const error = { code: 'invalid_secret_key', message: 'fare_sk_live_x is revoked.' };
      await using broken = await ScriptedService.start((response) => {
        response.writeHead(401, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ error }));
      });
      const options = { secretKey: 'fare_sk_live_x', baseUrl: broken.url };
      const tool = paidTool(new Farebox(options), { tool: 'x', price: 1 }, () => text('never'));
      const context = { requestInfo: { headers: { 'x-service-key': 'key' } } };
      const result = await (tool as unknown as (context: object) => Promise<object>)(context);
      assert.doesNotMatch(JSON.stringify(result), /secret|revoked/);
      assert.partialDeepStrictEqual(result, { isError: true });
    });
  });
}

const ACCIDENTS: readonly Accident[] = ['request lost', 'answer lost', 'busy'];

function atRandom(): Accident {
  return Math.random() < 0.4 ? ACCIDENTS[Math.floor(Math.random() * ACCIDENTS.length)] : undefined;
}

describe('client: paid tools while connections are cut', () => {
  const context = { requestInfo: { headers: { 'x-service-key': 'key' } } };
  const results = ['answers', 'isError', 'throws'] as const;

  for (const onUnavailable of ['fail', 'run_unpaid'] as const) {
    it(`are never paid twice, nor when they fail, nor free unless asked: ${onUnavailable}`, async () => {
      const ledger = new HoldingService();
      ledger.balance = 1_000_000;
      await using service = await ledger.start();
      ledger.accident = atRandom;
      const baseUrl = service.url;
      const farebox = new Farebox({ secretKey: 'fare_sk_live_x', baseUrl, maxRetries: 3 });
      const options = { tool: 'x', price: 1, onUnavailable };
      const outcomes = { paid: 0, free: 0, failed: 0, unknown: 0 };
      const one = async (index: number) => {
        const act = results[index % results.length];
        const handler = (_context: object) => {
          if (act === 'throws') throw new Error('broken');
          return { ...text('done'), isError: act === 'isError', _meta: undefined };
        };
        const result = await paidTool(farebox, options, handler)(context).catch(() => undefined);
        const said = result as Record<string, unknown> | undefined;
        const meta = said?.['_meta'] as Record<string, ChargeMeta> | undefined;
        const error = (said?.['structuredContent'] as { error?: { outcome: string } })?.error;
        if (meta?.['farebox/charge']) outcomes.paid += 1;
        else if (error?.outcome === 'unknown') outcomes.unknown += 1;
        else if (said?.['isError'] === false) outcomes.free += 1;
        else outcomes.failed += 1;
      };
      await Promise.all(Array.from({ length: 300 }, (_, index) => one(index)));
      const captured = ledger.holds.filter(({ status }) => status === 'captured').length;
      assert.equal(ledger.charges.length, captured);
      assert.equal(new Set(ledger.charges.map(({ holdId }) => holdId)).size, captured);
      assert.ok(outcomes.paid > 0 && outcomes.failed > 0, JSON.stringify(outcomes));
      // Only calls reported as unknown may have been paid as well.
      assert.ok(
        captured >= outcomes.paid && captured <= outcomes.paid + outcomes.unknown + outcomes.free,
      );
      if (onUnavailable === 'fail') assert.equal(outcomes.free, 0);
    });
  }
});
