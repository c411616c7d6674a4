/** What client/README.md says that `settle` gets in each framework: its functions run there, and charge what they say. */
import assert from 'node:assert/strict';
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
import { startTestApi, type TestApi } from '../support/api.ts';
import { read } from '../tree/sources.ts';
import { PaidBooks } from './paid-books.ts';
import { onNode, type Site } from './paid-sites.ts';

const costly = { found: 'otters', cost: 0.25 };

interface Options {
  readonly tool: string;
  readonly max: number;
  readonly settle: () => number;
}

/** A site with one route, `/`. */
const SITES: Readonly<Record<string, (farebox: Farebox, options: Options) => Promise<Site>>> = {
  fetch: async (farebox, options) => {
    const paid = forFetch.paidRoute(farebox, options, () => Response.json(costly));
    return {
      ask: (path, init) => paid(new Request(`http://site${path}`, init)),
      close: async () => {},
    };
  },
  hono: async (farebox, options) => {
    const app = new Hono();
    app.get('/', forHono.paidRoute(farebox, options), (context) => context.json(costly));
    return { ask: async (path, init) => app.request(path, init), close: async () => {} };
  },
  koa: (farebox, options) => {
    const app = new Koa();
    app.use(forKoa.paidRoute(farebox, options));
    app.use((ctx) => void (ctx.body = costly));
    return onNode(app.callback());
  },
  express: (farebox, options) => {
    const app = express();
    const paid = forExpress.paidRoute(farebox, options);
    app.get('/', paid, (_request, response) => void response.json(costly));
    return onNode(app);
  },
  fastify: async (farebox, options) => {
    const app = fastify();
    app.get('/', forFastify.paidRoute(farebox, options), async () => costly);
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    return {
      ask: (path, init) => fetch(url + path, init),
      close: async () => {
        app.server.closeAllConnections();
        await app.close();
      },
    };
  },
};

/** The functions of the README's table, by framework. */
function shownSettles(): Readonly<Record<string, string>> {
  const row = /^\| `@farebox\/client\/(\w+)` .*\| `([^`]+)` +\|$/gm;
  const rows = read('client/README.md').matchAll(row);
  return Object.fromEntries([...rows].map(([, name = '', shown = '']) => [name, shown]));
}

async function asFunction(text: string): Promise<() => number> {
  const url = `data:text/javascript,export default ${encodeURIComponent(text)}`;
  return ((await import(url)) as { default: () => number }).default;
}

describe('client: the `settle` of the README', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api?.stop());

  it('is shown for each framework', () => {
    assert.deepEqual(Object.keys(shownSettles()).toSorted(), Object.keys(SITES).toSorted());
  });

  for (const [name, start] of Object.entries(SITES)) {
    it(`charges the cost that is in the response: ${name}`, async () => {
      const account = await api.createAccount(10);
      const { developerKey: secretKey, consumerKey } = account;
      const settle = await asFunction(shownSettles()[name] ?? assert.fail());
      const farebox = new Farebox({ secretKey, baseUrl: api.url });
      const site = await start(farebox, { tool: 'search', max: 1, settle });
      try {
        const response = await site.ask('/', { headers: { 'x-service-key': consumerKey } });
        assert.equal(response.status, 200);
        assert.deepEqual(await response.json(), costly);
        const charges = await new PaidBooks(api, account).charges();
        assert.deepEqual(
          charges.map(({ amount }) => amount),
          [0.25],
        );
      } finally {
        await site.close();
      }
    });
  }
});
