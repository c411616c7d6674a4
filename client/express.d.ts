/** Types of paid routes for Express. */
import type { Farebox, OnUnavailable } from './index.js';
import type { PaidOptions } from './paid.js';

/** What is needed of Express's request. */
interface Request {
  headers: Record<string, string | string[] | undefined>;
}

/**
 * Makes a route a paid one: the price is held, the handler runs, and what it cost is captured before the answer
 * goes out. A status of 400 or more, an exception and a caller who leaves release the hold. A paid answer has the
 * headers X-Charge-Id and X-Charge-Receipt; a refusal has Farebox's status and error.
 *
 * The consumer's key is that of the request: see `serviceKeyOf`.
 *
 * The answer is kept back until it is paid for, so it is not streamed. `settle` is given its body.
 */
export declare function paidRoute(
  farebox: Farebox<OnUnavailable>,
  options: PaidOptions<[Request], Uint8Array>,
): (
  request: Request,
  response: { statusCode: number },
  next: (error?: unknown) => void,
) => Promise<void>;
