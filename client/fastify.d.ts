/** Types of paid routes for Fastify. */
import type { Farebox, OnUnavailable } from './index.js';
import type { PaidOptions } from './paid.js';

/** The part of Fastify's request that is used. */
interface Request {
  headers: Record<string, string | string[] | undefined>;
}

/** The options of a route. */
interface PaidHooks {
  preHandler(request: Request, reply: { statusCode: number }): Promise<void>;
  onSend(request: Request, reply: { statusCode: number }, payload: unknown): Promise<unknown>;
}

/**
 * Makes a route paid: holds the price, runs the handler, and captures the cost before the response is sent. A status of
 * 400 or above, an exception or a disconnected caller releases the hold. A paid response has the headers X-Charge-Id
 * and X-Charge-Receipt; a refusal has Farebox's status and error. A stream is paid for before it is sent, even if it
 * breaks off later.
 *
 * The consumer's key comes from the request; see `serviceKeyOf`.
 *
 * Pass it as the options of the route. If the route has a `preHandler` or `onSend` hook of its own, pass both
 * in an array: without the hooks of `paidRoute`, nobody pays. `settle` receives the payload. A response that
 * the handler writes to `reply.raw` is kept back until it is paid for, so it is not streamed; `settle`
 * receives its bytes.
 */
export declare function paidRoute(
  farebox: Farebox<OnUnavailable>,
  options: PaidOptions<[Request], unknown>,
): PaidHooks;
