/** Types of paid routes for Hono. */
import type { Farebox, OnUnavailable } from './index.js';
import type { PaidOptions } from './paid.js';

/** The part of Hono's context that is used. */
interface Context {
  req: { raw: Request };
  res: Response;
  finalized: boolean;
  body(data: null): Response;
}

/**
 * Makes a route paid: holds the price, runs the handler, and captures the cost before the response is sent. A status of
 * 400 or above, an exception or a disconnected caller releases the hold. A paid response has the headers X-Charge-Id
 * and X-Charge-Receipt; a refusal has Farebox's status and error. A stream is paid for before it is sent, even if it
 * breaks off later.
 *
 * The consumer's key comes from the request; see `serviceKeyOf`.
 */
export declare function paidRoute(
  farebox: Farebox<OnUnavailable>,
  options: PaidOptions<[Context], Context>,
): (context: Context, next: () => Promise<void>) => Promise<undefined>;
