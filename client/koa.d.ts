/** Types of paid routes for Koa. */
import type { Farebox, OnUnavailable } from './index.js';
import type { PaidOptions } from './paid.js';

/** What is needed of Koa's context. */
interface Context {
  status: number;
  body: unknown;
}

/**
 * Makes a route a paid one: the price is held, the handler runs, and what it cost is captured before the answer
 * goes out. A status of 400 or more, an exception and a caller who leaves release the hold. A paid answer has the
 * headers X-Charge-Id and X-Charge-Receipt; a refusal has Farebox's status and error.
 *
 * The consumer's key is that of the request: see `serviceKeyOf`.
 */
export declare function paidRoute(
  farebox: Farebox<OnUnavailable>,
  options: PaidOptions<[Context], Context>,
): (context: Context, next: () => Promise<unknown>) => Promise<void>;
