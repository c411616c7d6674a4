/** Streams that paid routes do not send, because they could not be paid for: they are closed, with what they hold open. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { paidRoute as fastifyRoute } from '@farebox/client/fastify';
import { paidRoute as fetchRoute } from '@farebox/client/fetch';
import { paidRoute as honoRoute } from '@farebox/client/hono';
import { paidRoute as koaRoute } from '@farebox/client/koa';
import { FakeFarebox } from '@farebox/client/testing';
import { fastify } from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { until } from '../support/stack.ts';

const price = { tool: 'search', price: 1 };

/** Opens the body. From then on, Farebox is away. */
type Open<Body> = () => Body;
type Ask = (headers: Record<string, string>) => Promise<Response>;

const SITES: Readonly<
  Record<
    string,
    (
      fake: FakeFarebox,
      node: Open<Readable>,
      web: Open<ReadableStream>,
    ) => Promise<[Ask, () => unknown]>
  >
> = {
  fastify: async (fake, node) => {
    const app = fastify();
    app.get('/', fastifyRoute(fake.farebox(), price), (_request, reply) => reply.send(node()));
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    return [(headers) => fetch(url, { headers }), () => app.close()];
  },
  'fastify, with a web stream': async (fake, _node, web) => {
    const app = fastify();
    app.get('/', fastifyRoute(fake.farebox(), price), (_request, reply) => reply.send(web()));
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    return [(headers) => fetch(url, { headers }), () => app.close()];
  },
  koa: async (fake, node) => {
    const app = new Koa();
    app.use(koaRoute(fake.farebox(), price)).use((ctx) => void (ctx.body = node()));
    const server = createServer((request, response) => void app.callback()(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return [(headers) => fetch(`http://127.0.0.1:${port}`, { headers }), () => server.close()];
  },
  hono: async (fake, _node, web) => {
    const app = new Hono();
    app.get('/', honoRoute(fake.farebox(), price), (context) => context.body(web()));
    return [async (headers) => app.request('/', { headers }), () => {}];
  },
  fetch: async (fake, _node, web) => {
    const answer = fetchRoute(fake.farebox(), price, () => new Response(web()));
    return [(headers) => answer(new Request('http://site', { headers })), () => {}];
  },
};

describe('client: streams of paid routes', () => {
  for (const [name, start] of Object.entries(SITES)) {
    it(`are closed when they could not be paid for: ${name}`, async () => {
      const fake = new FakeFarebox();
      const { apiKey } = fake.addConsumer({ balance: 1 });
      let isClosed = false;
      const close = () => void (isClosed = true);
      const node = () => {
        fake.isAway = true;
        return new Readable({ read() {} }).once('close', close);
      };
      const web = () => {
        fake.isAway = true;
        return new ReadableStream({ cancel: close });
      };
      const [ask, end] = await start(fake, node, web);
      try {
        const response = await ask({ 'x-service-key': apiKey });
        assert.equal(response.status, 503);
        assert.match(await response.text(), /service_unavailable/);
        await until(() => isClosed);
      } finally {
        await end();
      }
    });
  }
});
