/** The request that a handler gets: what its endpoint has checked, with a caller who may act now. */
import type { Context } from 'koa';
import type { MaybePromise } from '../charging/maybe-promise.ts';
import { NoQuery } from '../schemas/shapes.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import { authenticate, type Role } from './authenticate.ts';
import type { Request } from './endpoint.ts';
import { idempotencyKeyOf } from './idempotency-key-header.ts';
import { queryReader } from './query.ts';
import type { RateLimitHeaders } from './rate-limits.ts';
import { requestIdOf, type Reply } from './respond.ts';
import type { Api } from './services.ts';

export const readNoQuery = queryReader(NoQuery);

/** With the time for which a key in memory is trusted, less than the second within which a key ends. */
const WAIT_MS_MAX = 90;

/**
 * The caller of a request that may have waited, for its share or its body: its key or session may have ended
 * meanwhile.
 */
export function callerNow(
  api: Api,
  { req }: Context,
  role: Role,
  caller: KeyOwner,
  sinceMs: number,
): MaybePromise<KeyOwner> {
  return performance.now() - sinceMs > WAIT_MS_MAX ? authenticate(api, req, role) : caller;
}

interface Admitted {
  readonly caller: KeyOwner;
  /** The request without a body, for which its caller may still act when this is called. */
  readonly requestNow: <Q>(query: Q) => Promise<Request<undefined, Q>>;
}

/** Authenticates a request that may then wait for its share. */
export async function admit(api: Api, ctx: Context, role: Role): Promise<Admitted> {
  const caller = await authenticate(api, ctx.req, role);
  const sinceMs = performance.now();
  return {
    caller,
    requestNow: async (query) => {
      const now = await callerNow(api, ctx, role, caller, sinceMs);
      return new CheckedRequest(ctx, now, undefined, query);
    },
  };
}

export function withHeaders(headers: RateLimitHeaders, reply: Reply<unknown, number>) {
  return { ...reply, headers: { ...headers, ...reply.headers } };
}

/** Values that the hot path does not need are computed on first use. */
export class CheckedRequest<Body, Query> implements Request<Body, Query> {
  readonly caller: KeyOwner;
  readonly body: Body;
  readonly query: Query;
  readonly idempotencyKey: string | undefined;
  readonly #ctx: Context;

  constructor(ctx: Context, caller: KeyOwner, body: Body, query: Query) {
    this.caller = caller;
    this.body = body;
    this.query = query;
    this.idempotencyKey = idempotencyKeyOf(ctx.req);
    this.#ctx = ctx;
  }

  isAbandoned(): boolean {
    return this.#ctx.req.socket.destroyed;
  }

  get params(): Readonly<Record<string, string>> {
    return (this.#ctx as Context & { params?: Record<string, string> }).params ?? {};
  }

  get requestId(): string {
    return requestIdOf(this.#ctx);
  }
}
