/**
 * Records the API's responses: counts by route, for the metrics, and a trace of each refusal. A success costs one
 * addition; the caller is looked up only for a refusal.
 */
import type { Context, Middleware } from 'koa';
import type { Logger } from 'pino';
import { KEY_LENGTH_MAX } from '../domain/api-keys.ts';
import type { ApiError, ErrorCode } from '../domain/errors.ts';
import { wireId } from '../domain/ids.ts';
import { TOOL_NAME_MAX } from '../schemas/shapes.ts';
import { hashOfKey, type KeyOwner } from '../store/accounts/api-keys.ts';
import { ownerInMemory, type KeysInMemory } from './authenticate.ts';
import { RefusalCounts } from './refusals/refusal-counts.ts';
import { RefusalLog } from './refusals/refusal-log.ts';
import type { RefusalRecorder } from './refusals/refusal-recorder.ts';
import { requestIdOf } from './respond.ts';

export interface RouteTally {
  readonly method: string;
  /** As in the table of routes: `/v1/charges/:id`. */
  readonly route: string;
  succeeded: number;
  readonly failed: Map<ErrorCode | typeof ON_DEMAND, number>;
}

/** A failure of ours that a test key asked for by its amount. It must not page anybody. */
const ON_DEMAND = 'on_demand';

/** The route of requests without one: an unknown path or method, or invalid HTTP. */
const NO_ROUTE = 'none';

type RefusalSink = Pick<RefusalRecorder, 'add'>;

export class ResponseRecorder {
  readonly routes: RouteTally[] = [];
  readonly refusals = new RefusalCounts();
  readonly #refusalLog: RefusalLog;
  readonly #keys: KeysInMemory;
  readonly #recorder: RefusalSink;
  readonly #unmatched = this.#tally('', NO_ROUTE);

  constructor(log: Logger, keys: KeysInMemory, recorder: RefusalSink) {
    this.#recorder = recorder;
    this.#refusalLog = new RefusalLog(log);
    this.#keys = keys;
  }

  /** Wraps the middleware of a route, so that its responses count under the route. */
  counted(method: string, route: string, middleware: Middleware): Middleware {
    const tally = this.#tally(method.toUpperCase(), route);
    return (ctx, next) => {
      ctx.state['tally'] = tally;
      return middleware(ctx, next);
    };
  }

  succeeded(ctx: Context): void {
    this.#tallyOf(ctx).succeeded += 1;
  }

  failed(ctx: Context, error: ApiError): void {
    const tally = this.#tallyOf(ctx);
    count(tally, error);
    if (error.status >= 500) return;
    const caller = ownerInMemory(this.#keys, ctx.req);
    const { method } = ctx;
    this.#trace(requestIdOf(ctx), error, { method, route: tally.route }, caller);
    this.#attribute(caller, requestIdOf(ctx), ctx.state['body'], error);
  }

  /**
   * One failed charge of a batch, or entry of a settlement, whose request succeeds as a whole. A failure of
   * ours is counted in addition to that success: the client library sends all charges in batches, so an
   * outage would not show otherwise.
   */
  failedMember(
    caller: KeyOwner,
    requestId: string,
    member: unknown,
    error: ApiError,
    request: { readonly method: string; readonly route: string },
  ): void {
    if (error.status >= 500) {
      count(this.routes.find(({ route }) => route === request.route) ?? this.#unmatched, error);
      return;
    }
    this.#trace(requestId, error, request, caller);
    this.#attribute(caller, requestId, member, error);
  }

  /** Records bytes that could not be parsed as a request. */
  unparsable(requestId: string, error: ApiError): void {
    count(this.#unmatched, error);
    this.#trace(requestId, error, this.#unmatched, undefined);
  }

  #tally(method: string, route: string): RouteTally {
    const tally = { method, route, succeeded: 0, failed: new Map() };
    this.routes.push(tally);
    return tally;
  }

  #tallyOf(ctx: Context): RouteTally {
    return (ctx.state['tally'] as RouteTally | undefined) ?? this.#unmatched;
  }

  #trace(
    requestId: string,
    { code, status }: ApiError,
    { method, route }: { readonly method: string; readonly route: string },
    caller: KeyOwner | undefined,
  ): void {
    this.#refusalLog.write({
      requestId,
      code,
      status,
      method,
      route,
      ...(caller && { role: caller.kind, accountId: wireId('account', caller.accountId) }),
    });
  }

  #attribute(
    caller: KeyOwner | undefined,
    requestId: string,
    body: unknown,
    { code }: ApiError,
  ): void {
    if (caller?.kind !== 'developer') return;
    const named = textIn(body, 'tool') ?? '';
    // An unregistered name may be anything, and so may that of a malformed member of a batch.
    const tool = code === 'unknown_tool' || !isToolName(named) ? '' : named;
    const { developerId } = caller;
    this.refusals.add(wireId('developer', developerId), tool, code);
    this.#recorder.add({ developerId, code, tool, requestId, keyHash: this.#keyHashIn(body) });
  }

  /** The hash of a key that may be a spend key. A key that has ended, or never existed, is not in memory. */
  #keyHashIn(body: unknown): string | undefined {
    const key = textIn(body, 'apiKey');
    if (key === undefined || key.length > KEY_LENGTH_MAX) return undefined;
    const hash = hashOfKey(key);
    const isOther = (this.#keys.peek(hash)?.kind ?? 'spend') !== 'spend';
    return isOther ? undefined : hash;
  }
}

function isToolName(text: string): boolean {
  return text.length <= TOOL_NAME_MAX && !/[\p{Cc}\p{Cs}]/u.test(text);
}

function count({ failed }: RouteTally, { code, details }: ApiError): void {
  const outcome = details.isOnDemand === true ? ON_DEMAND : code;
  failed.set(outcome, (failed.get(outcome) ?? 0) + 1);
}

/** A field of a charge's body, if the body is well formed. */
function textIn(body: unknown, field: 'tool' | 'apiKey'): string | undefined {
  if (typeof body !== 'object' || body === null) return undefined;
  const value = (body as Readonly<Record<string, unknown>>)[field];
  return typeof value === 'string' ? value : undefined;
}
