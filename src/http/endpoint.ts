/**
 * A row of the table of routes, made into a Koa middleware: who may call, what the body must be, and the
 * handler, a function from a checked request to an answer. Handlers know nothing of Koa.
 */
import type { ParsedUrlQuery } from 'node:querystring';
import type { Context, Middleware } from 'koa';
import type { Static, TSchema } from 'typebox';
import type { Requester } from '../charging/batcher.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import { writeErrorOf } from './answer-errors.ts';
import { authenticate, type Role } from './authenticate.ts';
import type { Api } from './services.ts';
import { readJson } from './body.ts';
import { respondCsv, type Export } from './csv.ts';
import { idempotencyKeyOf } from './idempotency-key.ts';
import { requestIdOf, respondJson, type Answer } from './respond.ts';
import { bodyValidator } from './validation.ts';

export type { Answer };

/** Far more than a request for one thing needs. */
const BODY_BYTES_MAX = 64 * 1024;

export interface Request<Body = unknown> extends Requester {
  /** Whose key it is; the route decides which kind of key is let in. */
  readonly caller: KeyOwner;
  readonly body: Body;
  readonly query: ParsedUrlQuery;
  readonly params: Readonly<Record<string, string>>;
  readonly idempotencyKey: string | undefined;
  readonly requestId: string;
}

export interface Endpoint {
  readonly method: 'get' | 'post' | 'patch';
  readonly path: string;
  readonly middleware: (api: Api) => Middleware;
}

type Handle<Body> = (api: Api, request: Request<Body>) => Promise<Answer>;

interface Reading {
  readonly role: Role;
  readonly handle: Handle<undefined>;
}

interface Exporting {
  readonly role: Role;
  readonly handle: (api: Api, request: Request<undefined>) => Export;
}

interface Writing<T extends TSchema> {
  readonly role: Role;
  readonly body: T;
  readonly bodyBytesMax?: number;
  /** It changes nothing, or says by itself what is not known. */
  readonly isSafe?: true;
  readonly handle: Handle<Static<T>>;
}

export function get(path: string, { role, handle }: Reading): Endpoint {
  return {
    method: 'get',
    path,
    middleware: (api) => async (ctx) => {
      const caller = await authenticate(api, ctx.req, role);
      respondJson(ctx, await handle(api, new CheckedRequest(ctx, caller, undefined)));
    },
  };
}

/** A list as a file. */
export function csv(path: string, { role, handle }: Exporting): Endpoint {
  return {
    method: 'get',
    path,
    middleware: (api) => async (ctx) => {
      const caller = await authenticate(api, ctx.req, role);
      await respondCsv(ctx, handle(api, new CheckedRequest(ctx, caller, undefined)), (error) =>
        api.log.error({ err: error, requestId: requestIdOf(ctx) }, 'an export broke off'),
      );
    },
  };
}

export function post<T extends TSchema>(path: string, route: Writing<T>): Endpoint {
  const validate = bodyValidator(route.body);
  const handle = route.isSafe ? route.handle : orUnknown(route.handle);
  return {
    method: 'post',
    path,
    middleware: (api) => async (ctx) => {
      // The caller first: a stranger learns nothing, and nothing of his is parsed.
      const found = authenticate(api, ctx.req, route.role);
      const caller = found instanceof Promise ? await found : found;
      const body = validate(await readJson(ctx.req, route.bodyBytesMax ?? BODY_BYTES_MAX));
      respondJson(ctx, await handle(api, new CheckedRequest(ctx, caller, body)));
    },
  };
}

/** A POST's twin for what is there already: members that are left out stay as they are. */
export function patch<T extends TSchema>(path: string, route: Writing<T>): Endpoint {
  return { ...post(path, route), method: 'patch' };
}

/** A POST whose path says it all; a body is not read. */
export function act(path: string, { role, handle }: Reading): Endpoint {
  return { ...get(path, { role, handle: orUnknown(handle) }), method: 'post' };
}

/** A line that is lost while something is written leaves open whether it was. */
function orUnknown<Body>(handle: Handle<Body>): Handle<Body> {
  return (api, request) =>
    handle(api, request).catch((error: unknown) => {
      throw writeErrorOf(error);
    });
}

/** What the hot path does not ask for is looked up when it is asked for. */
class CheckedRequest<Body> implements Request<Body> {
  readonly caller: KeyOwner;
  readonly body: Body;
  readonly idempotencyKey: string | undefined;
  readonly #ctx: Context;

  constructor(ctx: Context, caller: KeyOwner, body: Body) {
    this.caller = caller;
    this.body = body;
    this.idempotencyKey = idempotencyKeyOf(ctx.req);
    this.#ctx = ctx;
  }

  isAbandoned(): boolean {
    return this.#ctx.req.socket.destroyed;
  }

  get query(): ParsedUrlQuery {
    return this.#ctx.query;
  }

  get params(): Readonly<Record<string, string>> {
    return (this.#ctx as Context & { params?: Record<string, string> }).params ?? {};
  }

  get requestId(): string {
    return requestIdOf(this.#ctx);
  }
}
