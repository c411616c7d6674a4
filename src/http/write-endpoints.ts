/** The middleware of rows that write, and of questions that have a body. */
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import type { Static, TSchema } from 'typebox';
import { whenKnown } from '../charging/maybe-promise.ts';
import { writeErrorOf } from './answer-errors.ts';
import { authenticate, type Role } from './authenticate.ts';
import { BODY_BYTES_MAX, bodyBytesOf, hasBody, readJson } from './body.ts';
import { callerNow, CheckedRequest, readNoQuery, withHeaders } from './checked-request.ts';
import type { Contract, Endpoint, Replies, ReplyOf, Request } from './endpoint.ts';
import type { ShareByBytes } from './fair-shares.ts';
import { respondJson } from './respond.ts';
import { respondInSlices } from './respond-in-slices.ts';
import type { Api } from './services.ts';
import { bodyValidator } from './validation.ts';

interface Writing<Body, R extends Replies> extends Contract {
  readonly role: Role;
  readonly replies: R;
  /**
   * The place that it takes among the account's requests in progress; `changes` if not set. `none`: it has
   * connections of its own, or waits without one.
   */
  readonly share?: 'changes' | 'refunds' | ShareByBytes | 'none';
  /** The rate limit of the account that it counts against; `changes` if not set. */
  readonly rate?: 'changes' | 'refunds' | 'none';
  /** The reply is a list, and may be long. */
  readonly repliesInSlices?: true;
  /** It changes nothing, or it reports unknown outcomes itself. */
  readonly reportsOutcome?: true;
  readonly handle: (api: Api, request: Request<Body>) => Promise<ReplyOf<R>>;
}

interface Posting<B extends TSchema, R extends Replies, A extends TSchema = B> extends Writing<
  Static<A>,
  R
> {
  readonly body: B;
  /** Checks less than `body`, when the handler checks the rest itself. */
  readonly accepts?: A;
  readonly bodyBytesMax?: number;
}

interface BodyReader<Body> {
  readonly read: (request: IncomingMessage) => unknown;
  readonly check: (json: unknown) => Body;
}

const NO_BODY: BodyReader<undefined> = { read: () => undefined, check: () => undefined };

export function post<B extends TSchema, R extends Replies, A extends TSchema = B>(
  path: string,
  { accepts, bodyBytesMax = BODY_BYTES_MAX, ...row }: Posting<B, R, A>,
): Endpoint {
  return write(path, row, {
    read: (request) =>
      row.isBodyOptional && !hasBody(request) ? {} : readJson(request, bodyBytesMax),
    check: bodyValidator((accepts ?? row.body) as A),
  });
}

/** The counterpart of a POST for an existing object: omitted members are not changed. */
export function patch<B extends TSchema, R extends Replies>(
  path: string,
  route: Posting<B, R>,
): Endpoint {
  return { ...post(path, route), method: 'patch' };
}

/** A POST without a body: the path says everything. */
export function act<R extends Replies>(path: string, route: Writing<undefined, R>): Endpoint {
  return write(path, route, NO_BODY);
}

/** A DELETE: as a POST without a body. */
export function remove<R extends Replies>(path: string, route: Writing<undefined, R>): Endpoint {
  return { ...act(path, route), method: 'delete' };
}

function write<Body, R extends Replies>(
  path: string,
  {
    handle: plain,
    reportsOutcome,
    share = 'changes',
    rate = 'changes',
    repliesInSlices,
    ...contract
  }: Writing<Body, R>,
  body: BodyReader<Body>,
): Endpoint {
  const handle = reportsOutcome ? plain : orUnknown(plain);
  const read = ({ req, query }: Context): unknown => {
    if (req.url?.includes('?')) readNoQuery(query);
    return body.read(req);
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
        const counted = rate === 'none' ? undefined : api.rateLimits[rate].countFor(caller);
        return whenKnown(counted, (headers) => {
          const answer = async (json: unknown): Promise<void> => {
            const checked = body.check(await json);
            ctx.state['body'] = checked;
            const known = callerNow(api, ctx, contract.role, caller, sinceMs);
            const now = known instanceof Promise ? await known : known;
            const reply = await handle(api, new CheckedRequest(ctx, now, checked, undefined));
            if (repliesInSlices) return respondInSlices(ctx, reply);
            respondJson(ctx, headers ? withHeaders(headers, reply) : reply);
          };
          if (share === 'none') return answer(read(ctx));
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

/** When the connection is lost during a write, the outcome is unknown. */
function orUnknown<Asked extends Request, R>(
  handle: (api: Api, request: Asked) => Promise<R>,
): (api: Api, request: Asked) => Promise<R> {
  return (api, request) =>
    handle(api, request).catch((error: unknown) => {
      throw writeErrorOf(error);
    });
}
