/**
 * How the API answered: counts by route, which the metrics show, and a trace of each refusal. A success costs an
 * addition. Who was refused is looked up only then.
 */
import type { Context, Middleware } from 'koa';
import type { Logger } from 'pino';
import type { ApiError, ErrorCode } from '../domain/errors.ts';
import { wireId } from '../domain/ids.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import { ownerInMemory, type KeysInMemory } from './authenticate.ts';
import { RefusalCounts } from './refusal-counts.ts';
import { RefusalLog } from './refusal-log.ts';
import { requestIdOf } from './respond.ts';

export interface RouteTally {
  readonly method: string;
  /** As the table of routes has it: `/v1/charges/:id`. */
  readonly route: string;
  succeeded: number;
  readonly failed: Map<ErrorCode, number>;
}

/** What no route takes: another path, another method, no HTTP. */
const NO_ROUTE = 'none';

export class Traffic {
  readonly routes: RouteTally[] = [];
  readonly refusals = new RefusalCounts();
  readonly #refusalLog: RefusalLog;
  readonly #keys: KeysInMemory;
  readonly #unmatched = this.#tally('', NO_ROUTE);

  constructor(log: Logger, keys: KeysInMemory) {
    this.#refusalLog = new RefusalLog(log);
    this.#keys = keys;
  }

  /** The middleware of a route, so that what it answers counts as the route's. */
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
    count(tally, error.code);
    if (error.status >= 500) return;
    const caller = ownerInMemory(this.#keys, ctx.req);
    const { method } = ctx;
    this.#trace(requestIdOf(ctx), error, { method, route: tally.route }, caller);
    this.#attribute(caller, toolOf(ctx.state['body']), error);
  }

  /** One charge of a batch, whose request as a whole succeeds. */
  failedMember(caller: KeyOwner, requestId: string, member: unknown, error: ApiError): void {
    if (error.status >= 500) return;
    this.#trace(requestId, error, { method: 'POST', route: '/v1/charges/batch' }, caller);
    this.#attribute(caller, toolOf(member), error);
  }

  /** What never became a request. */
  unparsable(requestId: string, error: ApiError): void {
    count(this.#unmatched, error.code);
    this.#trace(requestId, error, this.#unmatched, undefined);
  }

  #tally(method: string, route: string): RouteTally {
    const tally = { method, route, succeeded: 0, failed: new Map<ErrorCode, number>() };
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

  #attribute(caller: KeyOwner | undefined, tool: string, { code }: ApiError): void {
    if (caller?.kind !== 'developer') return;
    // A name that is not registered may be anything.
    this.refusals.add(
      wireId('developer', caller.developerId),
      code === 'unknown_tool' ? '' : tool,
      code,
    );
  }
}

function count({ failed }: RouteTally, code: ErrorCode): void {
  failed.set(code, (failed.get(code) ?? 0) + 1);
}

/** The tool that a charge's body names, once the body is known to be well formed. */
function toolOf(body: unknown): string {
  if (typeof body !== 'object' || body === null || !('tool' in body)) return '';
  return typeof body.tool === 'string' ? body.tool : '';
}
