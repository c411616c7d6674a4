/** Types of paid routes for Express. */
import type { Farebox, OnUnavailable } from './index.js';
import type { PaidOptions } from './paid.js';

/** The part of Express's request that is used. */
interface Request {
  headers: Record<string, string | string[] | undefined>;
}

/**
 * Makes a route paid: holds the price, runs the handler, and captures the cost before the response is sent. A status of
 * 400 or above, an exception or a disconnected caller releases the hold. A paid response has the headers X-Charge-Id
 * and X-Charge-Receipt; a refusal has Farebox's status and error.
 *
 * The consumer's key comes from the request; see `serviceKeyOf`.
 *
 * The response is kept back until it is paid for, so it is not streamed. `settle` receives its body.
 */
export declare function paidRoute(
  farebox: Farebox<OnUnavailable>,
  options: PaidOptions<[Request], Uint8Array>,
): (
  request: Request,
  response: { statusCode: number },
  next: (error?: unknown) => void,
) => Promise<void>;
