/**
 * Streams, and fetch responses, that paid routes do not send: they are closed, with what they hold open, and
 * not paid for.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { paidRoute as fastifyRoute } from '@farebox/client/fastify';
import { paidRoute as fetchRoute } from '@farebox/client/fetch';
import { paidRoute as honoRoute } from '@farebox/client/hono';
import { paidRoute as koaRoute } from '@farebox/client/koa';
import { FakeFarebox } from '@farebox/client/testing';
import { fastify } from 'fastify';
import { Hono, type Context } from 'hono';
import Koa from 'koa';
import { until } from '../support/stack.ts';

const price = { tool: 'search', price: 1, timeoutMs: 60_000 };

/** Opens the body. From then on, Farebox is away. */
type Open<Body> = () => Body;
type Ask = (headers: Record<string, string>) => Promise<Response>;

async function onKoa(
  fake: FakeFarebox,
  handler: Koa.Middleware,
  options: Parameters<typeof koaRoute>[1] = price,
): Promise<[Ask, () => unknown]> {
  const app = new Koa();
  app.silent = true;
  app.use(koaRoute(fake.farebox(), options)).use(handler);
  return listen(app);
}

async function listen(app: Koa): Promise<[Ask, () => unknown]> {
  const server = createServer((request, response) => void app.callback()(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return [(headers) => fetch(`http://127.0.0.1:${port}`, { headers }), () => server.close()];
}

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
  'fastify, with a fetch response': async (fake, _node, web) => {
    const app = fastify();
    app.get('/', fastifyRoute(fake.farebox(), price), async () => new Response(web()));
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    return [(headers) => fetch(url, { headers }), () => app.close()];
  },
  koa: (fake, node) => onKoa(fake, (ctx) => void (ctx.body = node())),
  'koa, with a web stream': (fake, _node, web) => onKoa(fake, (ctx) => void (ctx.body = web())),
  'koa, with a fetch response': (fake, _node, web) =>
    onKoa(fake, (ctx) => void (ctx.body = new Response(web()))),
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

const hasty = { ...price, timeoutMs: 50 };

/** Where the handler answers after its time. */
const LATE: Readonly<
  Record<
    'fastify' | 'koa',
    (fake: FakeFarebox, body: () => Promise<unknown>) => Promise<[Ask, () => unknown]>
  >
> = {
  fastify: async (fake, body) => {
    const app = fastify();
    app.get('/', fastifyRoute(fake.farebox(), hasty), body);
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    return [(headers) => fetch(url, { headers }), () => app.close()];
  },
  koa: (fake, body) => onKoa(fake, async (ctx) => void (ctx.body = await body()), hasty),
};

const reading = (read: (body: unknown) => Promise<unknown>) => ({
  tool: 'search',
  max: 1,
  settle: async (result: unknown) => {
    await read(result);
    return '0.25';
  },
});
const read = (response: unknown) => (response as Response).text();
const copied = (response: unknown) => (response as Response).clone().text();
const answer = () => new Response('otters');
const webStream = () =>
  new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('otters'));
      controller.close();
    },
  });
/** Reads to the end, and leaves the stream unlocked. */
const readWeb = (body: unknown) => text(body as ReadableStream);
/** Routes whose `settle` reads the body, or a copy of it. */
const COSTS: Readonly<
  Record<string, (fake: FakeFarebox, isCopied: boolean) => Promise<[Ask, () => unknown]>>
> = {
  fetch: async (fake, isCopied) => {
    const handler = fetchRoute(fake.farebox(), reading(isCopied ? copied : read), answer);
    return [(headers) => handler(new Request('http://site', { headers })), () => {}];
  },
  hono: async (fake, isCopied) => {
    const app = new Hono();
    app.onError((_error, context) => context.text('broken', 500));
    const options = reading((context) => (isCopied ? copied : read)((context as Context).res));
    app.get('/', honoRoute(fake.farebox(), options), answer);
    return [async (headers) => app.request('/', { headers }), () => {}];
  },
  'fastify, a fetch response': async (fake, isCopied) => {
    const app = fastify();
    app.get('/', fastifyRoute(fake.farebox(), reading(isCopied ? copied : read)), async () =>
      answer(),
    );
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    return [(headers) => fetch(url, { headers }), () => app.close()];
  },
  'koa, a fetch response': (fake, isCopied) =>
    onKoa(
      fake,
      (ctx) => void (ctx.body = answer()),
      reading((ctx) => (isCopied ? copied : read)((ctx as Koa.Context).body)),
    ),
  'fastify, a web stream': async (fake, isCopied) => {
    const app = fastify();
    const options = reading(async (body) => isCopied || readWeb(body));
    app.get('/', fastifyRoute(fake.farebox(), options), (_request, reply) =>
      reply.send(webStream()),
    );
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    return [(headers) => fetch(url, { headers }), () => app.close()];
  },
  'koa, a web stream': (fake, isCopied) =>
    onKoa(
      fake,
      (ctx) => void (ctx.body = webStream()),
      reading(async (ctx) => isCopied || readWeb((ctx as Koa.Context).body)),
    ),
  'koa, a Node stream': (fake, isCopied) =>
    onKoa(
      fake,
      (ctx) => void (ctx.body = Readable.from(['otters'])),
      reading(async (ctx) => isCopied || text((ctx as Koa.Context).body as Readable)),
    ),
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

  /** Opens a body of one kind. */
  const bodies = {
    'a Node stream': (close: () => void) => new Readable({ read() {} }).once('close', close),
    'a web stream': (cancel: () => void) => new ReadableStream({ cancel }),
    'a fetch response': (cancel: () => void) => new Response(new ReadableStream({ cancel })),
  };
  for (const [kind, open] of Object.entries(bodies)) {
    for (const name of ['fastify', 'koa'] as const) {
      it(`are closed when they come too late: ${kind} of ${name}`, async () => {
        const fake = new FakeFarebox();
        const { apiKey } = fake.addConsumer({ balance: 1 });
        const late = Promise.withResolvers<void>();
        let isClosed = false;
        const body = async () => {
          await late.promise;
          return open(() => void (isClosed = true));
        };
        const [ask, end] = await LATE[name](fake, body);
        try {
          const response = await ask({ 'x-service-key': apiKey });
          assert.equal(response.status, 504);
          assert.match(await response.text(), /call_timed_out/);
          late.resolve();
          await until(() => isClosed);
        } finally {
          await end();
        }
      });
    }
  }

  it('are not sent when they come too late, and Hono tells the handler', async () => {
    const fake = new FakeFarebox();
    const { apiKey } = fake.addConsumer({ balance: 1 });
    const [late, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<boolean>()];
    const app = new Hono();
    app.get('/', honoRoute(fake.farebox(), hasty), async (context) => {
      await late.promise;
      ended.resolve(context.finalized);
      return context.body(new ReadableStream());
    });
    const response = await app.request('/', { headers: { 'x-service-key': apiKey } });
    late.resolve();
    assert.deepEqual([response.status, await ended.promise], [504, true]);
    assert.equal((await fake.consumer(apiKey).balance()).balance, 1);
  });

  for (const [name, start] of Object.entries(COSTS)) {
    it(`are paid for if settle() reads a copy of them, and not if it reads them: ${name}`, async () => {
      for (const [isCopied, balance] of [
        [false, 1],
        [true, 0.75],
      ] as const) {
        const fake = new FakeFarebox();
        const { apiKey } = fake.addConsumer({ balance: 1 });
        const [ask, end] = await start(fake, isCopied);
        try {
          const response = await ask({ 'x-service-key': apiKey }).catch((error: unknown) => error);
          if (isCopied) assert.equal(await (response as Response).text(), 'otters');
          else if (response instanceof Error) assert.match(response.message, /clone/);
          else assert.equal((response as Response).status, 500);
          assert.equal((await fake.consumer(apiKey).balance()).balance, balance);
        } finally {
          await end();
        }
      }
    });
  }

  const failures: Readonly<Record<string, () => Response>> = {
    'says that it failed': () => new Response('no', { status: 500 }),
    'was read': () => {
      const response = new Response('read');
      void response.text();
      return response;
    },
    'is a network error': () => Response.error(),
  };
  for (const [how, make] of Object.entries(failures)) {
    it(`are not paid for when a fetch response ${how}, with Fastify`, async () => {
      const fake = new FakeFarebox();
      const { apiKey } = fake.addConsumer({ balance: 1 });
      const app = fastify();
      app.get('/', fastifyRoute(fake.farebox(), price), async () => make());
      const headers = { 'x-service-key': apiKey };
      const { statusCode, headers: sent } = await app.inject({ url: '/', headers });
      await app.close();
      assert.deepEqual([statusCode, sent['x-charge-id']], [500, undefined]);
      assert.equal((await fake.consumer(apiKey).balance()).balance, 1);
    });
  }

  it('are not paid for when somebody else reads them, with Koa', async () => {
    const fake = new FakeFarebox();
    const { apiKey } = fake.addConsumer({ balance: 1 });
    const [ask, end] = await onKoa(fake, (ctx) => {
      const body = new ReadableStream();
      body.getReader();
      ctx.body = body;
    });
    try {
      await ask({ 'x-service-key': apiKey }).catch(() => {});
      assert.equal((await fake.consumer(apiKey).balance()).balance, 1);
    } finally {
      await end();
    }
  });

  it('are paid for when the handler has sent them itself, with Koa', async () => {
    const fake = new FakeFarebox();
    const { apiKey } = fake.addConsumer({ balance: 1 });
    const [ask, end] = await onKoa(fake, (ctx) => {
      const body = Readable.from(['otters']);
      ctx.body = body;
      ctx.respond = false;
      body.pipe(ctx.res);
    });
    try {
      const response = await ask({ 'x-service-key': apiKey });
      assert.deepEqual([response.status, await response.text()], [200, 'otters']);
      assert.ok(response.headers.get('x-charge-id'));
      assert.equal((await fake.consumer(apiKey).balance()).balance, 0);
    } finally {
      await end();
    }
  });

  it('are not sent when they come after the refusal, while a middleware of Koa still waits', async () => {
    const fake = new FakeFarebox();
    const { apiKey } = fake.addConsumer({ balance: 1 });
    const [late, refused, ended] = [0, 1, 2].map(() => Promise.withResolvers<void>());
    const app = new Koa();
    app.use(async (_ctx, next) => {
      await next();
      refused?.resolve();
      // As one that stores a session.
      await ended?.promise;
    });
    app.use(koaRoute(fake.farebox(), hasty));
    app.use(async (ctx) => {
      await late?.promise;
      ctx.status = 200;
      ctx.body = 'the result';
      // After the code that awaits this handler has run.
      setImmediate(() => ended?.resolve());
    });
    const [ask, end] = await listen(app);
    try {
      const response = ask({ 'x-service-key': apiKey });
      await refused?.promise;
      late?.resolve();
      assert.equal((await response).status, 504);
      assert.match(await (await response).text(), /call_timed_out/);
    } finally {
      await end();
    }
  });
});
