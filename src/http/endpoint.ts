/**
 * Turns a row of the table of routes into Koa middleware: who may call, the schemas of the query and the body, and the
 * handler, a function from a checked request to a reply. Handlers know nothing of Koa. The row's schemas type the
 * handler at compile time, are checked by the tests at every call, and produce the API reference.
 */
import type { Context, Middleware } from 'koa';
import type { Static, TObject, TSchema } from 'typebox';
import type { Requester } from '../charging/batcher.ts';
import { whenKnown, type MaybePromise } from '../charging/maybe-promise.ts';
import type { ErrorCode } from '../domain/errors.ts';
import { NoQuery } from '../schemas/shapes.ts';
import { findActiveCredentials } from '../store/accounts/active-credentials.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import { takeTurn, takeTurnInSteps } from '../store/accounts/turns.ts';
import type { Connection } from '../store/database.ts';
import { writeErrorOf } from './answer-errors.ts';
import { authenticate, credentialOf, type Role } from './authenticate.ts';
import type { Api } from './services.ts';
import { BODY_BYTES_MAX, bodyBytesOf, hasBody, readJson } from './body.ts';
import type { ShareByBytes } from './fair-shares.ts';
import { respondCsv, type Export } from './csv.ts';
import { idempotencyKeyOf } from './idempotency-key-header.ts';
import type { OperationId } from './openapi/operations.ts';
import { EVENT_STREAM_TYPE, openEventStream, type EventStream } from './event-stream.ts';
import { queryReader } from './query.ts';
import type { RateLimitHeaders } from './rate-limits.ts';
import { requestIdOf, respond, respondJson, type Reply } from './respond.ts';
import { respondInSlices } from './respond-in-slices.ts';
import { bodyValidator } from './validation.ts';

export type { Reply };

export interface Request<Body = unknown, Query = unknown> extends Requester {
  /** The owner of the key. The route decides which kind of key it accepts. */
  readonly caller: KeyOwner;
  readonly body: Body;
  readonly query: Query;
  readonly params: Readonly<Record<string, string>>;
  readonly idempotencyKey: string | undefined;
  readonly requestId: string;
}

/** The schema of the body for each success status. */
export type Replies = Readonly<Record<number, TSchema>>;

type ReplyOf<R extends Replies> = {
  [Status in keyof R & number]: Reply<Static<R[Status]>, Status>;
}[keyof R & number];

/** The events of a stream: their name, and the schema of their data. */
interface EventContract {
  readonly name: string;
  readonly data: TSchema;
}

/** The parts of a row that the API reference and the tests read. */
export interface Contract {
  readonly operation: OperationId;
  /** `public`: no key is needed, and none is looked at. */
  readonly role: Role | 'public';
  /** The schemas of the `:names` in the path. */
  readonly params?: Readonly<Record<string, TSchema>>;
  readonly query?: TObject;
  readonly body?: TSchema;
  /** A request without a body is one with an empty object. */
  readonly isBodyOptional?: true;
  readonly replies: Replies | 'csv' | 'events';
  readonly event?: EventContract;
  /** Specific error codes, besides those that follow from the rest of the row. */
  readonly errors?: readonly ErrorCode[];
  /** The Idempotency-Key header makes a repeated request take effect once. */
  readonly isIdempotent?: true;
}

export interface Endpoint extends Contract {
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  readonly path: string;
  /** A lost database connection may leave its outcome unknown. */
  readonly isWrite: boolean;
  readonly middleware: (api: Api) => Middleware;
}

interface Reading<R extends Replies, Q extends TObject> extends Contract {
  readonly role: Role;
  /** `reads` if not set. `none`: its handler has one of its own. */
  readonly share?: 'reads' | 'scans' | 'none';
  readonly query?: Q;
  readonly replies: R;
  readonly handle: (api: Api, request: Request<undefined, Static<Q>>) => Promise<ReplyOf<R>>;
}

/** What the handler of a `scan` may use: it reads in one transaction, and in one snapshot unless it reads in steps. */
export type ScanApi = Omit<Api, 'database'> & { readonly database: Connection };

interface Scanning<R extends Replies, Q extends TObject> extends Contract {
  readonly role: Role;
  /** Each statement has a snapshot of its own: many may follow one another. */
  readonly inSteps?: boolean;
  readonly query?: Q;
  readonly replies: R;
  readonly handle: (api: ScanApi, request: Request<undefined, Static<Q>>) => Promise<ReplyOf<R>>;
}

interface Publishing<R extends Replies> extends Omit<Contract, 'role' | 'query' | 'body'> {
  readonly replies: R;
  /** The same reply for everybody, from memory: nothing limits how often it is read. */
  readonly handle: (api: Api) => ReplyOf<R>;
}

interface Exporting<Q extends TObject> extends Omit<Contract, 'replies'> {
  readonly role: Role;
  readonly query?: Q;
  readonly handle: (api: Api, request: Request<undefined, Static<Q>>) => Export;
}

/** Answers the request with a stream, which the handler's service then writes to. */
export type OpenStream = (onEnd: () => void) => EventStream;

interface Streaming extends Omit<Contract, 'replies' | 'query' | 'body'> {
  readonly role: Role;
  readonly event: EventContract;
  /** Refuses before it opens the stream, or not at all. */
  readonly handle: (api: Api, request: Request, open: OpenStream) => void;
}

interface Writing<B extends TSchema, R extends Replies, A extends TSchema = B> extends Contract {
  readonly role: Role;
  readonly body: B;
  /** Checks less than `body`, when the handler checks the rest itself. */
  readonly accepts?: A;
  readonly replies: R;
  readonly bodyBytesMax?: number;
  /**
   * How many of these requests an account may have in progress; `changes` if not set. `none`: it has
   * connections of its own, or waits without one. `counted`: the same, but it counts as a change.
   */
  readonly share?: 'changes' | 'refunds' | ShareByBytes | 'counted' | 'none';
  /** The reply is a list, and may be long. */
  readonly repliesInSlices?: true;
  /** It changes nothing, or it reports unknown outcomes itself. */
  readonly reportsOutcome?: true;
  readonly handle: (api: Api, request: Request<Static<A>>) => Promise<ReplyOf<R>>;
}

interface Acting<R extends Replies> extends Contract {
  readonly role: Role;
  readonly replies: R;
  /** `changes` if not set. `none`: it passes with the account's charges. */
  readonly share?: 'changes' | 'none';
  readonly handle: (
    api: Api,
    request: Request<undefined, Static<typeof NoQuery>>,
  ) => Promise<ReplyOf<R>>;
}

export function get<R extends Replies, Q extends TObject = typeof NoQuery>(
  path: string,
  { handle, share = 'reads', ...contract }: Reading<R, Q>,
): Endpoint {
  const read = queryReader(contract.query ?? NoQuery) as (query: Context['query']) => Static<Q>;
  return {
    ...contract,
    method: 'get',
    path,
    isWrite: false,
    middleware: (api) => async (ctx) => {
      const caller = await authenticate(api, ctx.req, contract.role);
      const sinceMs = performance.now();
      const headers = await api.rateLimits.reads.countFor(caller);
      const query = read(ctx.query);
      const answer = async () => {
        const now = await callerNow(api, ctx, contract.role, caller, sinceMs);
        return handle(api, new CheckedRequest(ctx, now, undefined, query));
      };
      const reply = await (share === 'none' ? answer() : api.shares[share].run(caller, answer));
      respondJson(ctx, withHeaders(headers, reply));
    },
  };
}

/** A read of many rows, which may keep a core of Postgres busy. An account has one of these in progress at a time. */
export function scan<R extends Replies, Q extends TObject = typeof NoQuery>(
  path: string,
  { handle, inSteps = false, ...contract }: Scanning<R, Q>,
): Endpoint {
  const take = inSteps ? takeTurnInSteps : takeTurn;
  return get<R, Q>(path, {
    ...contract,
    share: 'scans',
    handle: (api, request) =>
      take(api.database, request.caller.accountId, (database) =>
        handle({ ...api, database }, request),
      ),
  });
}

/**
 * A list as a downloadable file. It takes as long as its client reads, so it breaks off when the key or
 * session has ended.
 */
export function csv<Q extends TObject = typeof NoQuery>(
  path: string,
  { handle, ...contract }: Exporting<Q>,
): Endpoint {
  const read = queryReader(contract.query ?? NoQuery) as (query: Context['query']) => Static<Q>;
  return {
    ...contract,
    replies: 'csv',
    method: 'get',
    path,
    isWrite: false,
    middleware: (api) => async (ctx) => {
      const caller = await authenticate(api, ctx.req, contract.role);
      const sinceMs = performance.now();
      await api.rateLimits.reads.countFor(caller);
      const query = read(ctx.query);
      await api.shares.exports.run(caller, async () => {
        const now = await callerNow(api, ctx, contract.role, caller, sinceMs);
        const request = new CheckedRequest(ctx, now, undefined, query);
        await respondCsv(ctx, whileActive(api, now, handle(api, request)), (error) =>
          api.log.error({ err: error, requestId: requestIdOf(ctx) }, 'an export was aborted'),
        );
      });
    },
  };
}

function whileActive({ database }: Api, caller: KeyOwner, whole: Export): Export {
  async function* pages() {
    let isFirst = true;
    for await (const page of whole.pages) {
      if (!isFirst) {
        const active = await findActiveCredentials(database, [credentialOf(caller)]);
        if (active.size === 0) throw new Error('the key or session of an export has ended');
      }
      isFirst = false;
      yield page;
    }
  }
  return { ...whole, pages: pages() };
}

const readNoQuery = queryReader(NoQuery);

/** A GET whose reply stays open. It takes no share of the account's reads: a stream that waits does nothing. */
export function stream(path: string, { handle, ...contract }: Streaming): Endpoint {
  return {
    ...contract,
    replies: 'events',
    method: 'get',
    path,
    isWrite: false,
    middleware: (api) => async (ctx) => {
      const caller = await authenticate(api, ctx.req, contract.role);
      const headers = await api.rateLimits.reads.countFor(caller);
      readNoQuery(ctx.query);
      if (ctx.method === 'HEAD') return respond(ctx, 200, EVENT_STREAM_TYPE, '', { ...headers });
      handle(api, new CheckedRequest(ctx, caller, undefined, undefined), (onEnd) =>
        openEventStream(ctx, { ...headers }, onEnd),
      );
    },
  };
}

/** A GET that needs no key. */
export function open<R extends Replies>(
  path: string,
  { handle, ...contract }: Publishing<R>,
): Endpoint {
  return {
    ...contract,
    role: 'public',
    method: 'get',
    path,
    isWrite: false,
    middleware: (api) => async (ctx) => {
      readNoQuery(ctx.query);
      respondJson(ctx, handle(api));
    },
  };
}

export function post<B extends TSchema, R extends Replies, A extends TSchema = B>(
  path: string,
  {
    handle: plain,
    accepts,
    bodyBytesMax = BODY_BYTES_MAX,
    reportsOutcome,
    share = 'changes',
    repliesInSlices,
    ...contract
  }: Writing<B, R, A>,
): Endpoint {
  const validate = bodyValidator((accepts ?? contract.body) as A);
  const handle = reportsOutcome ? plain : orUnknown(plain);
  const isChange = share === 'counted' || (share === 'changes' && !reportsOutcome);
  const rate = share === 'refunds' ? share : isChange ? 'changes' : undefined;
  const read = ({ req, query }: Context): unknown => {
    if (req.url?.includes('?')) readNoQuery(query);
    return contract.isBodyOptional && !hasBody(req) ? {} : readJson(req, bodyBytesMax);
  };
  return {
    ...contract,
    method: 'post',
    path,
    isWrite: !reportsOutcome,
    // Authentication comes first: unauthenticated callers learn nothing, and their bodies are never parsed.
    // Only `answer` is an async function: each one more would be a promise more for each charge.
    middleware: (api) => (ctx) =>
      whenKnown(authenticate(api, ctx.req, contract.role), (caller) => {
        const sinceMs = performance.now();
        return whenKnown(rate && api.rateLimits[rate].countFor(caller), (headers) => {
          const answer = async (json: unknown): Promise<void> => {
            const body = validate(await json);
            ctx.state['body'] = body;
            const known = callerNow(api, ctx, contract.role, caller, sinceMs);
            const now = known instanceof Promise ? await known : known;
            const reply = await handle(api, new CheckedRequest(ctx, now, body, undefined));
            if (repliesInSlices) return respondInSlices(ctx, reply);
            respondJson(ctx, headers ? withHeaders(headers, reply) : reply);
          };
          if (share === 'none' || share === 'counted') return answer(read(ctx));
          if (isByBytes(share)) {
            // A large body is not read while it waits: it stays with its sender.
            const work = async () => answer(read(ctx));
            return api.shares[share].run(caller.accountId, bodyBytesOf(ctx.req), work);
          }
          // A small body is read first: a place is not held for a sender that is slow.
          return whenKnown(read(ctx), (json) => api.shares[share].run(caller, () => answer(json)));
        });
      }),
  };
}

function isByBytes(share: string): share is ShareByBytes {
  return share === 'batches' || share === 'settlements';
}

/** The counterpart of a POST for an existing object: omitted members are not changed. */
export function patch<B extends TSchema, R extends Replies>(
  path: string,
  route: Writing<B, R>,
): Endpoint {
  return { ...post(path, route), method: 'patch' };
}

/** A POST without a body: the path says everything. */
export function act<R extends Replies>(path: string, route: Acting<R>): Endpoint {
  const { handle: plain, share = 'changes', ...contract } = route;
  const handle = orUnknown(plain);
  return {
    ...contract,
    method: 'post',
    path,
    isWrite: true,
    middleware: (api) => async (ctx) => {
      const caller = await authenticate(api, ctx.req, contract.role);
      const sinceMs = performance.now();
      const answer = async () => {
        readNoQuery(ctx.query);
        const now = await callerNow(api, ctx, contract.role, caller, sinceMs);
        return handle(api, new CheckedRequest(ctx, now, undefined, {}));
      };
      if (share === 'none') return respondJson(ctx, await answer());
      const headers = await api.rateLimits[share].countFor(caller);
      const reply = await api.shares[share].run(caller, answer);
      respondJson(ctx, withHeaders(headers, reply));
    },
  };
}

/** A DELETE: as a POST without a body. */
export function remove<R extends Replies>(path: string, route: Acting<R>): Endpoint {
  return { ...act(path, route), method: 'delete' };
}

/** With the time for which a key in memory is trusted, less than the second within which a key ends. */
const WAIT_MS_MAX = 90;

/**
 * The caller of a request that may have waited, for its share or its body: its key or session may have ended
 * meanwhile.
 */
function callerNow(
  api: Api,
  { req }: Context,
  role: Role,
  caller: KeyOwner,
  sinceMs: number,
): MaybePromise<KeyOwner> {
  return performance.now() - sinceMs > WAIT_MS_MAX ? authenticate(api, req, role) : caller;
}

function withHeaders(headers: RateLimitHeaders, reply: Reply<unknown, number>) {
  return { ...reply, headers: { ...headers, ...reply.headers } };
}

/** When the connection is lost during a write, the outcome is unknown. */
function orUnknown<Asked extends Request, R>(
  handle: (api: Api, request: Asked) => Promise<R>,
): (api: Api, request: Asked) => Promise<R> {
  return (api, request) =>
    handle(api, request).catch((error: unknown) => {
      throw writeErrorOf(error);
    });
}

/** Values that the hot path does not need are computed on first use. */
class CheckedRequest<Body, Query> implements Request<Body, Query> {
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
