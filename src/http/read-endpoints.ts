/** The middleware of rows that read: one reply, a file, or a stream. */
import type { Context } from 'koa';
import type { Static, TObject } from 'typebox';
import { NoQuery } from '../schemas/shapes.ts';
import { findActiveCredentials } from '../store/accounts/active-credentials.ts';
import type { KeyOwner } from '../store/accounts/api-keys.ts';
import { takeTurn, takeTurnInSteps } from '../store/accounts/turns.ts';
import { authenticate, credentialOf, type Role } from './authenticate.ts';
import { admit, CheckedRequest, readNoQuery, withHeaders } from './checked-request.ts';
import { respondCsv, type Export } from './csv.ts';
import type {
  Contract,
  Endpoint,
  EventContract,
  OpenStream,
  Replies,
  ReplyOf,
  Request,
  ScanApi,
} from './endpoint.ts';
import { EVENT_STREAM_TYPE, openEventStream } from './event-stream.ts';
import { queryReader } from './query.ts';
import { requestIdOf, respond, respondJson } from './respond.ts';
import type { Api } from './services.ts';

interface Reading<R extends Replies, Q extends TObject> extends Contract {
  readonly role: Role;
  /** `reads` if not set. `none`: its handler has one of its own. */
  readonly share?: 'reads' | 'scans' | 'none';
  readonly query?: Q;
  readonly replies: R;
  readonly handle: (api: Api, request: Request<undefined, Static<Q>>) => Promise<ReplyOf<R>>;
}

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

interface Streaming extends Omit<Contract, 'replies' | 'query' | 'body'> {
  readonly role: Role;
  readonly event: EventContract;
  /** Refuses before it opens the stream, or not at all. */
  readonly handle: (api: Api, request: Request, open: OpenStream) => void;
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
      const { caller, requestNow } = await admit(api, ctx, contract.role);
      const headers = await api.rateLimits.reads.countFor(caller);
      const query = read(ctx.query);
      const answer = async () => handle(api, await requestNow(query));
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
      const { caller, requestNow } = await admit(api, ctx, contract.role);
      await api.rateLimits.reads.countFor(caller);
      const query = read(ctx.query);
      await api.shares.exports.run(caller, async () => {
        const request = await requestNow(query);
        await respondCsv(ctx, whileActive(api, request.caller, handle(api, request)), (error) =>
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
