/** Paid routes, the same in each framework: paid when the handler answers, never when it fails. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Router } from '@koa/router';
import { Farebox } from '@farebox/client';
import * as forExpress from '@farebox/client/express';
import * as forFastify from '@farebox/client/fastify';
import * as forFetch from '@farebox/client/fetch';
import * as forHono from '@farebox/client/hono';
import * as forKoa from '@farebox/client/koa';
import express from 'express';
import { fastify } from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { until } from '../support/stack.ts';
import { HoldingService } from './holding-service.ts';
import type { ScriptedService } from './scripted-service.ts';

interface Site {
  ask(path: string, init?: RequestInit): Promise<Response>;
  close(): Promise<unknown>;
}

const price = { tool: 'search', price: '0.5' };
const settled = { tool: 'search', max: 2, settle: () => '0.25' };
const LATE = { tool: 'search', price: '0.5', timeoutMs: 50 };

/** The handlers of each site; `ran` counts the calls. */
let ran = 0;
const found = () => {
  ran += 1;
  return { found: 'otters' };
};
const broken = (): never => {
  ran += 1;
  throw new Error('the tool is broken');
};

async function onNode(
  listen: (request: IncomingMessage, response: ServerResponse) => unknown,
): Promise<Site> {
  const server = createServer((request, response) => void listen(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    ask: (path, init) => fetch(`http://127.0.0.1:${port}${path}`, init),
    close: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const SITES: Readonly<Record<string, (farebox: Farebox) => Promise<Site>>> = {
  koa: (farebox) => {
    const app = new Koa();
    app.silent = true;
    const router = new Router();
    const paid = forKoa.paidRoute(farebox, price);
    router.get('/ok', paid, (ctx) => void (ctx.body = found()));
    router.get('/fails', paid, (ctx) => void ((ctx.status = 422), (ctx.body = found())));
    router.get('/throws', paid, broken);
    router.get('/settled', forKoa.paidRoute(farebox, settled), (ctx) => {
      ctx.body = found();
    });
    return onNode(app.use(router.routes()).callback());
  },
  express: (farebox) => {
    const app = express();
    app.set('env', 'test');
    const paid = forExpress.paidRoute(farebox, price);
    app.get('/ok', paid, (_request, response) => void response.json(found()));
    app.get('/fails', paid, (_request, response) => void response.status(422).json(found()));
    app.get('/throws', paid, broken);
    const charged = forExpress.paidRoute(farebox, settled);
    app.get('/settled', charged, (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"found":');
      found();
      response.end('"otters"}');
    });
    return onNode(app);
  },
  fastify: async (farebox) => {
    const app = fastify();
    const paid = forFastify.paidRoute(farebox, price);
    app.get('/ok', paid, async () => found());
    app.get('/fails', paid, async (_request, reply) => reply.code(422).send(found()));
    app.get('/throws', paid, async () => broken());
    app.get('/settled', forFastify.paidRoute(farebox, settled), async () => found());
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    return { ask: (path, init) => fetch(url + path, init), close: () => app.close() };
  },
  hono: async (farebox) => {
    const app = new Hono();
    app.onError((_error, context) => context.text('broken', 500));
    const paid = forHono.paidRoute(farebox, price);
    app.get('/ok', paid, (context) => context.json(found()));
    app.get('/fails', paid, (context) => context.json(found(), 422));
    app.get('/throws', paid, broken);
    app.get('/settled', forHono.paidRoute(farebox, settled), (context) => context.json(found()));
    return {
      ask: async (path, init) => app.request(path, init),
      close: async () => {},
    };
  },
  fetch: async (farebox) => {
    const paid = forFetch.paidRoute.bind(undefined, farebox, price);
    const routes: Record<string, (request: Request) => Promise<Response>> = {
      '/ok': paid(() => Response.json(found())),
      '/fails': paid(() => Response.json(found(), { status: 422 })),
      '/throws': paid(broken),
      '/settled': forFetch.paidRoute(farebox, settled, () => Response.json(found())),
    };
    return {
      ask: async (path, init) =>
        (await routes[path]?.(new Request(`http://site${path}`, init)).catch(
          () => new Response('broken', { status: 500 }),
        )) ?? assert.fail(path),
      close: async () => {},
    };
  },
};

for (const [name, start] of Object.entries(SITES)) {
  describe(`client: a paid route of ${name}`, () => {
    let ledger: HoldingService;
    let service: ScriptedService;
    let site: Site;
    const headers = { 'x-service-key': 'fare_ck_live_x' };
    const statuses = () => ledger.holds.map(({ status }) => status);

    beforeEach(async () => {
      ran = 0;
      ledger = new HoldingService();
      service = await ledger.start();
      site = await start(
        new Farebox({ secretKey: 'fare_sk_live_x', baseUrl: service.url, timeoutMs: 500 }),
      );
    });
    afterEach(async () => {
      await site.close();
      await service.close();
    });

    it('is paid once when it answers, with the receipt in a header', async () => {
      const response = await site.ask('/ok', { headers });
      assert.equal(response.status, 200);
      assert.deepEqual(await response.json(), { found: 'otters' });
      assert.equal(response.headers.get('x-charge-id'), 'chg_1');
      assert.equal(response.headers.get('x-charge-receipt'), 'r.hld_1');
      assert.deepEqual(ledger.charges, [{ holdId: 'hld_1', amount: 0.5 }]);
      assert.equal(ledger.balance, 9.5);
    });

    it('captures what the call cost and releases the rest', async () => {
      const response = await site.ask('/settled', { headers });
      assert.deepEqual(await response.json(), { found: 'otters' });
      assert.deepEqual(ledger.charges, [{ holdId: 'hld_1', amount: 0.25 }]);
      assert.equal(ledger.balance, 9.75);
    });

    for (const [path, status] of [
      ['/fails', 422],
      ['/throws', 500],
    ] as const) {
      it(`is not paid when it answers ${status}`, async () => {
        const response = await site.ask(path, { headers });
        assert.equal(response.status, status);
        assert.equal(response.headers.get('x-charge-id'), null);
        assert.deepEqual([ledger.charges, statuses(), ran], [[], ['released'], 1]);
        assert.equal(ledger.balance, 10);
      });
    }

    it('does not run when the balance is too low, and says what is needed', async () => {
      ledger.balance = 0.2;
      const response = await site.ask('/ok', { headers });
      assert.equal(response.status, 402);
      assert.partialDeepStrictEqual(await response.json(), {
        error: {
          code: 'insufficient_balance',
          balance: 0.2,
          required: 0.5,
          topUpUrl: 'http://pay',
        },
      });
      assert.equal(ran, 0);
    });

    it('does not run without a key', async () => {
      const response = await site.ask('/ok');
      assert.equal(response.status, 401);
      assert.partialDeepStrictEqual(await response.json(), { error: { code: 'invalid_api_key' } });
      assert.deepEqual([ran, ledger.seen.length], [0, 0]);
    });

    it('does not run while Farebox is unreachable', async () => {
      await service.close();
      const response = await site.ask('/ok', { headers });
      assert.equal(response.status, 503);
      assert.partialDeepStrictEqual(await response.json(), {
        error: { code: 'service_unavailable', outcome: 'not_held' },
      });
      assert.equal(ran, 0);
    });

    it('returns no result that could not be paid for', async () => {
      let requests = 0;
      ledger.accident = () => ((requests += 1) > 1 ? 'busy' : undefined);
      const response = await site.ask('/ok', { headers });
      assert.equal(response.status, 503);
      assert.doesNotMatch(await response.text(), /otters/);
      assert.deepEqual([ledger.charges, ran], [[], 1]);
    });
  });
}

describe('client: a paid route', () => {
  it('releases the hold when it takes too long', async () => {
    const ledger = new HoldingService();
    await using service = await ledger.start();
    const farebox = new Farebox({ secretKey: 'fare_sk_live_x', baseUrl: service.url });
    const never = new Promise<Response>(() => {});
    const route = forFetch.paidRoute(farebox, LATE, () => never);
    const headers = { 'x-service-key': 'fare_ck_live_x' };
    const response = await route(new Request('http://site/', { headers }));
    assert.equal(response.status, 504);
    assert.equal(ledger.holds[0]?.status, 'released');
  });

  it('releases the hold when the caller disconnects', async () => {
    const ledger = new HoldingService();
    await using service = await ledger.start();
    const farebox = new Farebox({ secretKey: 'fare_sk_live_x', baseUrl: service.url });
    const app = new Koa();
    app.use(forKoa.paidRoute(farebox, price)).use(() => new Promise(() => {}));
    const site = await onNode(app.callback());
    const caller = new AbortController();
    const headers = { 'x-service-key': 'fare_ck_live_x' };
    const asked = site.ask('/', { headers, signal: caller.signal }).catch(() => undefined);
    await until(() => ledger.holds.length === 1);
    caller.abort();
    await until(() => ledger.holds[0]?.status === 'released');
    await asked;
    await site.close();
  });
});
