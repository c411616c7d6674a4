/** Prices and costs by what a framework knows of a request, in the framework's own types. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { paidRoute as expressRoute } from '@farebox/client/express';
import { paidRoute as fastifyRoute } from '@farebox/client/fastify';
import { paidRoute as fetchRoute } from '@farebox/client/fetch';
import { paidRoute as honoRoute } from '@farebox/client/hono';
import { paidRoute as koaRoute } from '@farebox/client/koa';
import { FakeFarebox } from '@farebox/client/testing';
import express from 'express';
import { fastify, type FastifyRequest } from 'fastify';
import { Hono, type Context } from 'hono';
import Koa from 'koa';

type Ask = (path: string, headers: Record<string, string>) => Promise<Response>;

async function ask(listen: RequestListener, ...[path, headers]: Parameters<Ask>) {
  const server = createServer(listen).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
  server.close();
  return response;
}

const fake = new FakeFarebox();
const farebox = fake.farebox();

/** By the query of the request. */
const price = {
  express: ({ query }: express.Request) => query['price'] as string,
  fastify: ({ query }: FastifyRequest) => (query as { price: string }).price,
  fetch: ({ url }: Request) => new URL(url).searchParams.get('price') ?? 0,
  hono: ({ req }: Context) => req.query('price') ?? 0,
  koa: ({ query }: Koa.Context) => query['price'] as string,
};

const SITES: Readonly<Record<string, Ask>> = {
  express: async (...asked) => {
    const app = express().get(
      '/',
      expressRoute(farebox, { tool: 'x', price: price.express }),
      (_, response) => {
        response.send('ok');
      },
    );
    return ask(app, ...asked);
  },
  fastify: async (...asked) => {
    const app = fastify();
    app.get('/', fastifyRoute(farebox, { tool: 'x', price: price.fastify }), async () => 'ok');
    await app.ready();
    return ask((request, response) => app.routing(request, response), ...asked);
  },
  fetch: async (path, headers) => {
    const handler = fetchRoute(
      farebox,
      { tool: 'x', price: price.fetch },
      () => new Response('ok'),
    );
    return handler(new Request(`http://site${path}`, { headers }));
  },
  'fetch, with the request of a framework': async (path, headers) => {
    class AppRequest extends Request {
      readonly query = new URL(this.url).searchParams;
    }
    const handler = fetchRoute(
      farebox,
      { tool: 'x', price: ({ query }: AppRequest) => query.get('price') ?? 0 },
      ({ query }: AppRequest) => new Response(query.has('price') ? 'ok' : 'no price'),
    );
    return handler(new AppRequest(`http://site${path}`, { headers }));
  },
  hono: async (path, headers) => {
    const app = new Hono();
    app.get('/', honoRoute(farebox, { tool: 'x', price: price.hono }), (context) =>
      context.text('ok'),
    );
    return app.request(path, { headers });
  },
  'hono, by the result': async (path, headers) => {
    const app = new Hono();
    app.get('/', honoRoute(farebox, { tool: 'x', max: 1, settle: price.hono }), (context) =>
      context.text('ok'),
    );
    return app.request(path, { headers });
  },
  koa: async (...asked) => {
    const app = new Koa();
    app
      .use(koaRoute(farebox, { tool: 'x', price: price.koa }))
      .use((context) => void (context.body = 'ok'));
    return ask((request, response) => void app.callback()(request, response), ...asked);
  },
};

describe('client: prices of paid routes', () => {
  for (const [name, site] of Object.entries(SITES)) {
    it(`are computed from the query: ${name}`, async () => {
      const { apiKey } = fake.addConsumer({ balance: 1 });
      const response = await site('/?price=0.25', { 'x-service-key': apiKey });
      assert.deepEqual([response.status, await response.text()], [200, 'ok']);
      assert.equal((await fake.consumer(apiKey).balance()).balance, 0.75);
    });
  }
});
