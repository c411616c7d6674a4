/**
 * A row of the table of routes, made into a Koa middleware: who may call, what the body must be, and the
 * handler, a function from a checked request to an answer. Handlers know nothing of Koa.
 */
import type { ParsedUrlQuery } from 'node:querystring';
import type { Context, Middleware } from 'koa';
import type { Static, TSchema } from 'typebox';
import type { Requester } from '../charging/batcher.ts';
import { whenKnown } from '../charging/maybe-promise.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import { writeErrorOf } from './answer-errors.ts';
import { authenticate, type Role } from './authenticate.ts';
import type { Api } from './services.ts';
import { bodyBytesOf, readJson } from './body.ts';
import type { Share } from './fair-shares.ts';
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
  /** How much of it an account may have in progress. Not set: any amount. */
  readonly share?: Share;
  /** Changes nothing, or tells callers itself when an outcome is unknown: a lost connection needs no mapping. */
  readonly reportsOwnOutcome?: true;
  readonly handle: Handle<Static<T>>;
}

export function get(path: string, { role, handle }: Reading): Endpoint {
  return {
    method: 'get',
    path,
    middleware: (api) => async (ctx) => {
      const caller = await authenticate(api, ctx.req, role);
      const headers = await api.rateLimits.reads.count(caller.accountId);
      const answer = await api.shares.reads.run(caller.accountId, 1, () =>
        handle(api, new CheckedRequest(ctx, caller, undefined)),
      );
      respondJson(ctx, { ...answer, headers: { ...headers, ...answer.headers } });
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
      await api.rateLimits.reads.count(caller.accountId);
      const request = new CheckedRequest(ctx, caller, undefined);
      await api.shares.exports.run(caller.accountId, 1, () =>
        respondCsv(ctx, handle(api, request), (error) =>
          api.log.error({ err: error, requestId: requestIdOf(ctx) }, 'an export broke off'),
        ),
      );
    },
  };
}

export function post<T extends TSchema>(path: string, route: Writing<T>): Endpoint {
  const validate = bodyValidator(route.body);
  const handle = route.reportsOwnOutcome ? route.handle : orUnknown(route.handle);
  return {
    method: 'post',
    path,
    // Authentication comes first: a stranger learns nothing, and no stranger's body is parsed.
    middleware: (api) => async (ctx) =>
      whenKnown(authenticate(api, ctx.req, route.role), async (caller) => {
        const { share } = route;
        const headers =
          share === 'refunds' ? await api.rateLimits.refunds.count(caller.accountId) : undefined;
        const respond = async () => {
          const body = validate(await readJson(ctx.req, route.bodyBytesMax ?? BODY_BYTES_MAX));
          const answer = await handle(api, new CheckedRequest(ctx, caller, body));
          respondJson(
            ctx,
            headers ? { ...answer, headers: { ...headers, ...answer.headers } } : answer,
          );
        };
        if (!share) return respond();
        // A body that has to wait is not read: it stays with its sender.
        const weight = share === 'batches' ? bodyBytesOf(ctx.req) : 1;
        return api.shares[share].run(caller.accountId, weight, respond);
      }),
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
