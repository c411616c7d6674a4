/**
 * Responses that the server cannot send. A caller who gets an error, or nothing, is not charged. The error goes
 * to the server's own handling of errors, and the server's process keeps running.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { paidRoute as expressRoute } from '@farebox/client/express';
import { paidRoute as fastifyRoute } from '@farebox/client/fastify';
import { paidRoute as fetchRoute } from '@farebox/client/fetch';
import { paidRoute as honoRoute } from '@farebox/client/hono';
import { paidRoute as koaRoute } from '@farebox/client/koa';
import { FakeFarebox } from '@farebox/client/testing';
import express, { type ErrorRequestHandler, type RequestHandler } from 'express';
import { fastify, type RouteHandlerMethod } from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { until } from '../support/stack.ts';

const price = { tool: 'search', price: 1 };

interface Answer {
  /** Undefined when the server closes the connection instead of answering. */
  readonly status: number | undefined;
  readonly chargeId: string | null;
  readonly text: string;
}

async function ask(url: string, apiKey: string): Promise<Answer> {
  const response = await fetch(url, { headers: { 'x-service-key': apiKey } }).catch(
    () => undefined,
  );
  const chargeId = response?.headers.get('x-charge-id') ?? null;
  return { status: response?.status, chargeId, text: (await response?.text()) ?? '' };
}

/** Calls a server once, in which `apiKey` may pay. */
async function askOnce(listener: RequestListener, apiKey: string): Promise<Answer> {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    return await ask(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, apiKey);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** A middleware that fails when the response ends, as one that writes a log may do. */
function failAtEnd(when: 'before' | 'after', error: Error): RequestHandler {
  return (_request, response, next) => {
    const end = response.end.bind(response);
    response.end = (body: unknown) => {
      response.end = end;
      if (when === 'after') end(body);
      throw error;
    };
    next();
  };
}

/** Fails before its first byte. */
const broken = () =>
  new Readable({
    read() {
      this.destroy(new Error('the stream is broken'));
    },
  });

/** A hook of Fastify that changes nothing. */
const keep = async (): Promise<unknown> => undefined;

const fail = async (): Promise<never> => {
  throw new Error('the hook is broken');
};

const pass: RequestHandler = (_request, _response, next) => next();

function misfit(response: ServerResponse): void {
  response.strictContentLength = true;
  response.setHeader('content-length', 3);
  response.end('otters');
}

describe('client: responses of paid routes that cannot be sent', () => {
  let fake: FakeFarebox;
  let apiKey: string;

  beforeEach(() => {
    fake = new FakeFarebox();
    ({ apiKey } = fake.addConsumer({ balance: 1 }));
  });

  const balance = async () => (await fake.consumer(apiKey).balance()).balance;

  /** Refunded charges too. */
  const charges = async () => (await fake.farebox().charges.list().page()).charges;

  /** Gives the errors that Express has handled. */
  async function onExpress(before: RequestHandler, handler: RequestHandler) {
    const app = express();
    app.set('env', 'test');
    const errors: unknown[] = [];
    const note: ErrorRequestHandler = (error, _request, _response, next) => {
      errors.push(error);
      next(error);
    };
    app.use(before);
    app.get('/', expressRoute(fake.farebox(), price), handler);
    app.use(note);
    return { answer: await askOnce(app, apiKey), errors };
  }
  async function onFastify(handler: RouteHandlerMethod, onSend = keep): Promise<Answer> {
    const app = fastify();
    const paid = fastifyRoute(fake.farebox(), price);
    const pay: typeof paid.onSend = (...call) => paid.onSend(...call);
    app.get('/', { ...paid, onSend: [pay, onSend] }, handler);
    try {
      return await ask(await app.listen({ port: 0, host: '127.0.0.1' }), apiKey);
    } finally {
      await app.close();
    }
  }

  function onKoa(handler: Koa.Middleware): Promise<Answer> {
    const app = new Koa();
    app.silent = true;
    app.use(koaRoute(fake.farebox(), price)).use(handler);
    return askOnce((request, response) => void app.callback()(request, response), apiKey);
  }

  it('are paid for when a middleware of Express fails after it has sent them, and Express gets its error', async () => {
    const error = new Error('the log is broken');
    const { errors } = await onExpress(failAtEnd('after', error), (_request, response) => {
      response.end('otters');
    });
    assert.deepEqual([errors, await balance()], [[error], 0]);
  });

  it('are not paid for when a middleware of Express fails before it sends them', async () => {
    const error = new Error('the log is broken');
    const { answer, errors } = await onExpress(failAtEnd('before', error), (_request, response) => {
      response.end('otters');
    });
    assert.deepEqual([answer.status, answer.chargeId, errors], [500, null, [error]]);
    assert.equal(await balance(), 1);
  });

  for (const when of ['before', 'after'] as const) {
    it(`hand the error to Express when a refusal fails ${when} it was sent`, async () => {
      fake.isAway = true;
      const error = new Error('the log is broken');
      const { errors } = await onExpress(failAtEnd(when, error), () => {});
      assert.deepEqual(errors, [error]);
    });
  }

  it('hand the error to Express when the refusal of a call that takes too long fails', async () => {
    const app = express();
    app.set('env', 'test');
    const error = new Error('the log is broken');
    const failed = Promise.withResolvers<unknown>();
    app.use(failAtEnd('after', error));
    app.get('/', expressRoute(fake.farebox(), { ...price, timeoutMs: 50 }), () => {});
    app.use(((thrown, _request, _response, next) => {
      failed.resolve(thrown);
      next(thrown);
    }) satisfies ErrorRequestHandler);
    await askOnce(app, apiKey);
    assert.deepEqual([await failed.promise, await balance()], [error, 1]);
  });

  it('are not paid for when Node refuses the length of the body, with Express', async () => {
    const { answer, errors } = await onExpress(pass, (_request, response) => misfit(response));
    assert.equal(answer.status, undefined);
    assert.match(String(errors), /content-length/i);
    assert.equal(await balance(), 1);
  });

  it('are not paid for when Node refuses the length of the body, with a hijacked reply', async () => {
    const { status } = await onFastify((_request, reply) => {
      reply.hijack();
      misfit(reply.raw);
    });
    assert.equal(status, undefined);
    assert.equal(await balance(), 1);
  });

  const refused: Readonly<Record<string, (response: ServerResponse) => void>> = {
    'a status of 0': (response) => void (response.statusCode = 0),
    'a status of 99': (response) => void response.writeHead(99),
    'a text of the status that is not Latin': (response) => {
      response.statusMessage = 'Done \u2713';
    },
  };
  for (const [what, prepare] of Object.entries(refused)) {
    const answers: Readonly<Record<string, () => Promise<Answer>>> = {
      Express: async () => {
        const { answer } = await onExpress(pass, (_request, response) => {
          prepare(response);
          response.end('otters');
        });
        return answer;
      },
      'a hijacked reply': () =>
        onFastify((_request, reply) => {
          reply.hijack();
          prepare(reply.raw);
          reply.raw.end('otters');
        }),
      'the response of Koa': () =>
        onKoa((ctx) => {
          ctx.respond = false;
          prepare(ctx.res);
          ctx.res.end('otters');
        }),
      Koa: () =>
        onKoa((ctx) => {
          ctx.body = 'otters';
          prepare(ctx.res);
        }),
    };
    for (const [name, answer] of Object.entries(answers)) {
      it(`are not paid for when they have ${what}, with ${name}`, async () => {
        const { status, chargeId } = await answer();
        assert.deepEqual([status, chargeId, await charges()], [500, null, []]);
      });
    }
  }

  const circular: { self?: object } = {};
  circular.self = circular;
  for (const [what, body] of Object.entries({ 'a BigInt': { count: 10n }, 'a circle': circular })) {
    it(`are not paid for when Koa cannot serialize ${what}`, async () => {
      const { status, chargeId } = await onKoa((ctx) => void (ctx.body = body));
      assert.deepEqual([status, chargeId, await charges()], [500, null, []]);
    });
  }

  it('are not paid for when a stream of Koa fails before its first byte', async () => {
    const { status, text } = await onKoa((ctx) => void (ctx.body = broken()));
    assert.deepEqual([status, text], [undefined, '']);
    await until(async () => (await balance()) === 1);
  });

  it('are not paid for when a middleware of Koa fails outside the paid route', async () => {
    const app = new Koa();
    app.silent = true;
    app.use(async (_ctx, next) => {
      await next();
      throw new Error('the log is broken');
    });
    app.use(koaRoute(fake.farebox(), price)).use((ctx) => void (ctx.body = 'otters'));
    const listener: RequestListener = (request, response) => void app.callback()(request, response);
    const { status, chargeId } = await askOnce(listener, apiKey);
    assert.deepEqual([status, chargeId], [500, null]);
    await until(async () => (await balance()) === 1);
  });

  const unsendable: Readonly<Record<string, RouteHandlerMethod>> = {
    'an object as text/csv': async (_request, reply) => reply.type('text/csv').send({ found: 1 }),
    'a number as text': async (_request, reply) => reply.type('text/plain').send(5),
    'what a serializer left as an object': async (_request, reply) =>
      reply.serializer((payload: unknown) => payload as string).send({ found: 1 }),
    'a header that is not Latin': async (_request, reply) =>
      reply.header('x-done', '\u2713').send('x'),
  };
  for (const [what, handler] of Object.entries(unsendable)) {
    it(`are not paid for when Fastify refuses to send ${what}`, async () => {
      const { status, chargeId } = await onFastify(handler);
      assert.deepEqual([status, chargeId, await charges()], [500, null, []]);
    });
  }

  it('are not paid for when a stream of Fastify fails before its first byte', async () => {
    const { status, chargeId } = await onFastify((_request, reply) => reply.send(broken()));
    assert.deepEqual([status, chargeId, await balance()], [500, null, 1]);
  });

  it('are paid for and sent when an async handler of Fastify does not return its reply', async () => {
    const { status, chargeId, text } = await onFastify(async (_request, reply) => {
      void reply.send({ found: 1 });
    });
    assert.deepEqual([status, text, await balance()], [200, '{"found":1}', 0]);
    assert.notEqual(chargeId, null);
  });

  it('are not paid for when a handler of Fastify throws after it has sent them', async () => {
    const { status, chargeId } = await onFastify(async (_request, reply) => {
      void reply.send('otters');
      throw new Error('the handler is broken');
    });
    assert.deepEqual([status, chargeId, await balance()], [500, null, 1]);
  });

  it('are not paid for when a later onSend of Fastify fails', async () => {
    const { status, chargeId } = await onFastify(async () => 'otters', fail);
    assert.deepEqual([status, chargeId, await balance()], [500, null, 1]);
  });

  for (const [what, result] of Object.entries({ 'an object': { a: 1 }, 'a string': 'otters' })) {
    const handler = () => result as unknown as Response;

    it(`are not paid for when a fetch handler returns ${what} instead of one`, async () => {
      const route = fetchRoute(fake.farebox(), price, handler);
      const request = new Request('http://site', { headers: { 'x-service-key': apiKey } });
      await assert.rejects(route(request), TypeError);
      assert.deepEqual(await charges(), []);
    });

    it(`are not paid for when a handler of Hono returns ${what} instead of one`, async () => {
      const app = new Hono();
      app.onError((error, context) => context.text(error.name, 500));
      app.get('/', honoRoute(fake.farebox(), price), handler);
      const response = await app.request('/', { headers: { 'x-service-key': apiKey } });
      assert.deepEqual([response.status, await response.text()], [500, 'TypeError']);
      assert.deepEqual(await charges(), []);
    });
  }
});
