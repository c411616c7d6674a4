/** The same paid site in each framework. */
import assert from 'node:assert/strict';
import { once, type EventEmitter } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Router } from '@koa/router';
import type { Farebox } from '@farebox/client';
import * as forExpress from '@farebox/client/express';
import * as forFastify from '@farebox/client/fastify';
import * as forFetch from '@farebox/client/fetch';
import * as forHono from '@farebox/client/hono';
import * as forKoa from '@farebox/client/koa';
import express, { type RequestHandler } from 'express';
import { fastify, type FastifyReply } from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';

export interface Site {
  ask(path: string, init?: RequestInit): Promise<Response>;
  close(): Promise<unknown>;
}

/** What the server's own code throws that fails. */
const fail = (): never => {
  throw ran.error;
};

/** A hold that is settled for less than it reserves. */
const settled = { tool: 'search', max: 2, settle: () => '0.25' };
const price = { tool: 'search', price: '0.5' };
const unsettled = { tool: 'search', max: 2, settle: fail };
const unpriced = { tool: 'search', price: fail };
const hasty = { ...price, timeoutMs: 50 };
const endless = { ...settled, settle: () => new Promise<never>(() => {}), timeoutMs: 50 };

/**
 * How often a handler ran, how many requests wait in front of `/left`, how many responses are closed, what ends
 * the waits of `/late` and `/slow`, and what handlers, prices and costs that fail throw.
 */
export const ran = {
  times: 0,
  inFront: 0,
  closed: 0,
  late: Promise.withResolvers<void>(),
  error: new Error('the tool is broken'),
};

/** What a body parser or a sign-in does that ends after the caller has left. */
async function untilLeft(response: EventEmitter): Promise<void> {
  ran.inFront += 1;
  await once(response, 'close');
}

function noteClose(response: EventEmitter): void {
  response.once('close', () => {
    ran.closed += 1;
  });
}

/** Without a server, the signal is all that tells of a caller who leaves. */
function noteAbort(init?: RequestInit): void {
  init?.signal?.addEventListener('abort', () => {
    ran.closed += 1;
  });
}

const untilReplyLeft = (_request: unknown, { raw }: FastifyReply) => untilLeft(raw);

async function untilAborted(signal: AbortSignal): Promise<void> {
  ran.inFront += 1;
  await once(signal, 'abort');
}

const found = () => {
  ran.times += 1;
  return { found: 'otters' };
};
const broken = (): never => {
  ran.times += 1;
  return fail();
};
const never = <T>(): Promise<T> => {
  ran.times += 1;
  return new Promise<T>(() => {});
};

/** A handler in JavaScript that forgets to return its response. */
const nothing = () => undefined as unknown as Response;

const answerBroken = () => new Response('broken', { status: 500 });

/** As Deno.upgradeWebSocket() gives it; Node cannot make one. */
const switched = () => Object.defineProperty(new Response(), 'status', { value: 101 });

/** A response that was sent already, as it were. */
const wasRead = async () => {
  const response = Response.json(found());
  await response.text();
  return response;
};

const late = async () => {
  const answer = found();
  await ran.late.promise;
  return answer;
};

/** Writes the response itself, without the framework, as proxies and streams do. */
async function writeTo(response: ServerResponse, status: number): Promise<void> {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.write('{"found":');
  await nextTurn();
  found();
  response.end('"otters"}');
}

/** Gives headers as they came from another server, as proxies do. */
function passOn(response: ServerResponse): void {
  response.writeHead(200, 'Passed On', ['set-cookie', 'a=1', 'set-cookie', 'b=2']);
  response.end(JSON.stringify(found()));
}

/** What an error handler does after a handler that fails although it has answered. */
function failAfter(response: ServerResponse): void {
  response.writeHead(200).end(JSON.stringify(found()));
  response.statusCode = 500;
  response.statusMessage = 'Broken';
}

function begin(response: ServerResponse): never {
  response.setHeader('content-type', 'text/html');
  response.write('begun');
  return broken();
}

const passKoa = (status: number) => (ctx: Koa.Context) => {
  ctx.respond = false;
  void writeTo(ctx.res, status);
};

const hijack = (status: number) => (_request: unknown, reply: FastifyReply) => {
  reply.hijack();
  void writeTo(reply.raw, status);
};

export async function onNode(
  listen: (request: IncomingMessage, response: ServerResponse) => unknown,
): Promise<Site> {
  const server = createServer((request, response) => {
    noteClose(response);
    void listen(request, response);
  });
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

/**
 * `/ok`, `/settled`, `/unpriced`, whose price throws, `/fails`, `/throws`, `/waits` forever, `/late`, which
 * sets a header that a refusal must not have, has 50 ms and takes longer, `/slow`, which has time,
 * `/unsettled`, whose cost throws, `/endless`, whose cost is never known, and `/left`, whose caller leaves
 * before it is asked to pay. Where a handler may write the response without its framework: `/raw`,
 * `/raw-fails`, `/raw-settled`, `/raw-unsettled`, `/raw-endless`, `/raw-late`, `/raw-begun`, which throws
 * after it has begun, `/raw-list`, whose headers are a list, `/raw-fails-after`, which fails after it has
 * answered, and `/ended`, which does not tell its framework.
 */
export const SITES: Readonly<Record<string, (farebox: Farebox) => Promise<Site>>> = {
  koa: (farebox) => {
    const app = new Koa();
    app.silent = true;
    const router = new Router();
    const paid = forKoa.paidRoute(farebox, price);
    router.get('/ok', paid, (ctx) => void (ctx.body = found()));
    router.get('/fails', paid, (ctx) => void ((ctx.status = 422), (ctx.body = found())));
    router.get('/throws', paid, broken);
    router.get('/waits', paid, never);
    router.get('/late', forKoa.paidRoute(farebox, hasty), async (ctx) => {
      ctx.set('content-encoding', 'gzip');
      ctx.body = await late();
    });
    router.get('/slow', paid, async (ctx) => {
      ctx.body = await late();
    });
    router.get('/left', async ({ res }, next) => {
      await untilLeft(res);
      await next();
    });
    router.get('/left', paid, (ctx) => void (ctx.body = found()));
    router.get('/settled', forKoa.paidRoute(farebox, settled), (ctx) => {
      ctx.body = found();
    });
    const dear = forKoa.paidRoute(farebox, unpriced);
    router.get('/unpriced', dear, (ctx) => void (ctx.body = found()));
    router.get('/raw', paid, passKoa(200));
    router.get('/raw-fails', paid, passKoa(422));
    router.get('/raw-settled', forKoa.paidRoute(farebox, settled), passKoa(200));
    router.get('/unsettled', forKoa.paidRoute(farebox, unsettled), (ctx) => {
      ctx.body = found();
    });
    router.get('/raw-unsettled', forKoa.paidRoute(farebox, unsettled), passKoa(200));
    router.get('/endless', forKoa.paidRoute(farebox, endless), (ctx) => void (ctx.body = found()));
    router.get('/raw-endless', forKoa.paidRoute(farebox, endless), passKoa(200));
    router.get('/raw-begun', paid, (ctx) => begin(ctx.res));
    router.get('/raw-list', paid, (ctx) => passOn(ctx.res));
    router.get('/raw-fails-after', paid, (ctx) => failAfter(ctx.res));
    router.get('/raw-late', forKoa.paidRoute(farebox, hasty), async (ctx) => {
      ctx.respond = false;
      ctx.res.setHeader('content-encoding', 'gzip');
      await late();
      await writeTo(ctx.res, 200);
    });
    router.get('/ended', paid, (ctx) => writeTo(ctx.res, 200));
    return onNode(app.use(router.routes()).callback());
  },
  express: (farebox) => {
    const app = express();
    app.set('env', 'test');
    const paid = forExpress.paidRoute(farebox, price);
    app.get('/ok', paid, (_request, response) => void response.json(found()));
    app.get('/fails', paid, (_request, response) => void response.status(422).json(found()));
    app.get('/throws', paid, broken);
    app.get('/waits', paid, () => never());
    app.get('/late', forExpress.paidRoute(farebox, hasty), async (_request, response) => {
      response.set('content-encoding', 'gzip');
      response.status(201).json(await late());
    });
    app.get('/slow', paid, async (_request, response) => {
      response.json(await late());
    });
    app.get('/left', async (_request, response, next) => {
      await untilLeft(response);
      next();
    });
    app.get('/left', paid, (_request, response) => void response.json(found()));
    // As Express 4 calls it: what the middleware returns is not looked at.
    const dear = forExpress.paidRoute(farebox, unpriced);
    const call: RequestHandler = (...input) => void dear(...input);
    app.get('/unpriced', call, (_request, response) => void response.json(found()));
    const uncharged = forExpress.paidRoute(farebox, unsettled);
    app.get('/unsettled', uncharged, (_request, response) => {
      response.set('content-encoding', 'gzip').json(found());
    });
    app.get('/endless', forExpress.paidRoute(farebox, endless), (_request, response) => {
      response.set('content-encoding', 'gzip').json(found());
    });
    app.get('/raw-begun', paid, (_request, response) => begin(response));
    app.get('/raw-list', paid, (_request, response) => passOn(response));
    app.get('/raw-fails-after', paid, (_request, response) => {
      response.json(found());
      throw new Error('the tool is broken');
    });
    const charged = forExpress.paidRoute(farebox, settled);
    app.get('/settled', charged, (_request, response) => {
      response.writeHead(200, 'OK', { 'content-type': 'application/json' });
      response.flushHeaders();
      response.write('{"found":', () => {
        found();
        response.end(Buffer.from('"otters"}'), () => {});
        // A mistake, which must not send anything before the call is paid.
        response.write('too late');
      });
    });
    return onNode(app);
  },
  fastify: async (farebox) => {
    const app = fastify();
    app.addHook('onRequest', async (_request, reply) => noteClose(reply.raw));
    const paid = forFastify.paidRoute(farebox, price);
    app.get('/ok', paid, async () => found());
    app.get('/fails', paid, async (_request, reply) => reply.code(422).send(found()));
    app.get('/throws', paid, async () => broken());
    app.get('/waits', paid, () => never());
    app.get('/late', forFastify.paidRoute(farebox, hasty), async (_request, reply) => {
      reply.header('content-encoding', 'gzip');
      return late();
    });
    app.get('/slow', paid, late);
    app.get('/left', { ...paid, onRequest: untilReplyLeft }, async () => found());
    app.get('/settled', forFastify.paidRoute(farebox, settled), async () => found());
    app.get('/unpriced', forFastify.paidRoute(farebox, unpriced), async () => found());
    app.get('/raw', paid, hijack(200));
    app.get('/raw-fails', paid, hijack(422));
    app.get('/raw-settled', forFastify.paidRoute(farebox, settled), hijack(200));
    app.get('/unsettled', forFastify.paidRoute(farebox, unsettled), async () => found());
    app.get('/raw-unsettled', forFastify.paidRoute(farebox, unsettled), hijack(200));
    app.get('/endless', forFastify.paidRoute(farebox, endless), async () => found());
    app.get('/raw-endless', forFastify.paidRoute(farebox, endless), hijack(200));
    app.get('/raw-begun', paid, async (_request, reply) => begin(reply.raw));
    app.get('/raw-list', paid, async (_request, reply) => passOn(reply.raw));
    app.get('/raw-fails-after', paid, async (_request, reply) => failAfter(reply.raw));
    app.get('/raw-late', forFastify.paidRoute(farebox, hasty), async (_request, reply) => {
      reply.hijack();
      reply.raw.setHeader('content-encoding', 'gzip');
      await late();
      await writeTo(reply.raw, 200);
    });
    app.get('/ended', paid, async (_request, reply) => writeTo(reply.raw, 200));
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    return {
      ask: (path, init) => fetch(url + path, init),
      close: async () => {
        app.server.closeAllConnections();
        await app.close();
      },
    };
  },
  hono: async (farebox) => {
    const app = new Hono();
    app.onError((_error, context) => context.text('broken', 500));
    const paid = forHono.paidRoute(farebox, price);
    app.get('/ok', paid, (context) => context.json(found()));
    app.get('/fails', paid, (context) => context.json(found(), 422));
    app.get('/throws', paid, broken);
    app.get('/waits', paid, () => never<Response>());
    app.get('/late', forHono.paidRoute(farebox, hasty), async (context) => {
      context.header('content-encoding', 'gzip');
      return context.json(await late());
    });
    app.get('/slow', paid, async (context) => context.json(await late()));
    app.get('/left', async ({ req }, next) => {
      await untilAborted(req.raw.signal);
      await next();
    });
    app.get('/left', paid, (context) => context.json(found()));
    app.get('/unpriced', forHono.paidRoute(farebox, unpriced), (context) => context.json(found()));
    app.get('/settled', forHono.paidRoute(farebox, settled), (context) => context.json(found()));
    const uncharged = forHono.paidRoute(farebox, unsettled);
    app.get('/unsettled', uncharged, (context) => context.json(found()));
    app.get('/endless', forHono.paidRoute(farebox, endless), (context) => context.json(found()));
    app.get('/nothing', paid, nothing);
    app.get('/switched', paid, switched);
    app.get('/unsendable', paid, () => Response.error());
    app.get('/read', paid, wasRead);
    return {
      ask: async (path, init) => {
        noteAbort(init);
        return app.request(path, init);
      },
      close: async () => {},
    };
  },
  fetch: async (farebox) => {
    const paid = forFetch.paidRoute.bind(undefined, farebox, price);
    const routes: Record<string, (request: Request) => Promise<Response>> = {
      '/ok': paid(() => Response.json(found())),
      '/fails': paid(() => Response.json(found(), { status: 422 })),
      '/throws': paid(broken),
      '/waits': paid(() => never()),
      '/late': forFetch.paidRoute(farebox, hasty, async () => Response.json(await late())),
      '/slow': paid(async () => Response.json(await late())),
      '/left': async (request) => {
        await untilAborted(request.signal);
        return paid(() => Response.json(found()))(request);
      },
      '/nothing': paid(nothing),
      '/switched': paid(switched),
      '/unsendable': paid(() => Response.error()),
      '/read': paid(wasRead),
      '/unpriced': forFetch.paidRoute(farebox, unpriced, () => Response.json(found())),
      '/settled': forFetch.paidRoute(farebox, settled, () => Response.json(found())),
      '/unsettled': forFetch.paidRoute(farebox, unsettled, () => Response.json(found())),
      '/endless': forFetch.paidRoute(farebox, endless, () => Response.json(found())),
    };
    return {
      ask: async (path, init) => {
        noteAbort(init);
        const answered = routes[path]?.(new Request(`http://site${path}`, init));
        return (await answered?.catch(answerBroken)) ?? assert.fail(path);
      },
      close: async () => {},
    };
  },
};
