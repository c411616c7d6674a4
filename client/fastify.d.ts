/** Types of paid routes for Fastify. */
import type { Farebox, OnUnavailable } from './index.js';
import type { PaidOptions } from './paid.js';

/** What is needed of Fastify's request. */
interface Request {
  headers: Record<string, string | string[] | undefined>;
}

/** Options of a route. */
interface PaidHooks {
  preHandler(request: Request, reply: { statusCode: number }): Promise<void>;
  onSend(request: Request, reply: { statusCode: number }, payload: unknown): Promise<unknown>;
}

/**
 * Makes a route a paid one: the price is held, the handler runs, and what it cost is captured before the answer
 * goes out. A status of 400 or more, an exception and a caller who leaves release the hold. A paid answer has the
 * headers X-Charge-Id and X-Charge-Receipt; a refusal has Farebox's status and error.
 *
 * The consumer's key is that of the request: see `serviceKeyOf`.
 *
 * It goes into the options of the route. `settle` is given the payload.
 */
export declare function paidRoute(
  farebox: Farebox<OnUnavailable>,
  options: PaidOptions<[Request], unknown>,
): PaidHooks;
