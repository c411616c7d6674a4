/**
 * Paid routes over HTTP/2, whose response object has fewer methods: a handler that writes it itself is paid
 * and answered.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Http2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { paidRoute as fastifyRoute } from '@farebox/client/fastify';
import { paidRoute as koaRoute } from '@farebox/client/koa';
import { FakeFarebox } from '@farebox/client/testing';
import { fastify } from 'fastify';
import Koa from 'koa';

const price = { tool: 'search', price: 1 };

async function onFastify(fake: FakeFarebox): Promise<Http2Server> {
  const app = fastify({ http2: true });
  app.get('/', fastifyRoute(fake.farebox(), price), (_request, reply) => {
    reply.hijack();
    reply.raw.writeHead(200, { 'x-found': 'yes' });
    reply.raw.end('otters');
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  return app.server;
}

async function onKoa(fake: FakeFarebox): Promise<Http2Server> {
  const app = new Koa();
  app.use(koaRoute(fake.farebox(), price)).use((ctx) => {
    ctx.respond = false;
    ctx.res.writeHead(200, { 'x-found': 'yes' });
    ctx.res.end('otters');
  });
  const server = createServer(
    (request, response) => void app.callback()(request as never, response as never),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

describe('client: paid routes over HTTP/2', () => {
  for (const [name, listen] of Object.entries({ fastify: onFastify, koa: onKoa })) {
    it(`answer what the handler of ${name} writes itself, once it is paid, or the refusal`, async () => {
      const fake = new FakeFarebox();
      const { apiKey } = fake.addConsumer({ balance: 1 });
      const server = await listen(fake);
      const { port } = server.address() as AddressInfo;
      const session = connect(`http://127.0.0.1:${port}`);
      const ask = async () => {
        const stream = session.request({ ':path': '/', 'x-service-key': apiKey });
        const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
        return { headers, body: await text(stream) };
      };
      const paid = await ask();
      assert.deepEqual([paid.headers[':status'], paid.body], [200, 'otters']);
      assert.equal(paid.headers['x-found'], 'yes');
      assert.match(String(paid.headers['x-charge-id']), /^chg_/);
      const refused = await ask();
      assert.equal(refused.headers[':status'], 402);
      assert.match(refused.body, /insufficient_balance/);
      session.close();
      server.close();
    });
  }
});
