/** The middleware of rows that write, and of questions that have a body. */
import type { Context } from 'koa';
import type { Static, TSchema } from 'typebox';
import { whenKnown } from '../charging/maybe-promise.ts';
import type { NoQuery } from '../schemas/shapes.ts';
import { writeErrorOf } from './answer-errors.ts';
import { authenticate, type Role } from './authenticate.ts';
import { BODY_BYTES_MAX, bodyBytesOf, hasBody, readJson } from './body.ts';
import { admit, callerNow, CheckedRequest, readNoQuery, withHeaders } from './checked-request.ts';
import type { Contract, Endpoint, Replies, ReplyOf, Request } from './endpoint.ts';
import type { ShareByBytes } from './fair-shares.ts';
import { respondJson } from './respond.ts';
import { respondInSlices } from './respond-in-slices.ts';
import type { Api } from './services.ts';
import { bodyValidator } from './validation.ts';

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
      const { caller, requestNow } = await admit(api, ctx, contract.role);
      const answer = async () => {
        readNoQuery(ctx.query);
        return handle(api, await requestNow({}));
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

/** When the connection is lost during a write, the outcome is unknown. */
function orUnknown<Asked extends Request, R>(
  handle: (api: Api, request: Asked) => Promise<R>,
): (api: Api, request: Asked) => Promise<R> {
  return (api, request) =>
    handle(api, request).catch((error: unknown) => {
      throw writeErrorOf(error);
    });
}
