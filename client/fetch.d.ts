/** Types of paid fetch handlers. */
import type { Farebox, OnUnavailable } from './index.js';
import type { PaidOptions } from './paid.js';

/**
 * Makes a route a paid one: the price is held, the handler runs, and what it cost is captured before the answer
 * goes out. A status of 400 or more, an exception and a caller who leaves release the hold. A paid answer has the
 * headers X-Charge-Id and X-Charge-Receipt; a refusal has Farebox's status and error.
 *
 * The consumer's key is that of the request: see `serviceKeyOf`.
 *
 * @example
 * export const GET = paidRoute(farebox, { tool: 'search', price: '0.02' }, (request) => Response.json(...));
 */
export declare function paidRoute<Rest extends unknown[]>(
  farebox: Farebox<OnUnavailable>,
  options: PaidOptions<[Request], Response>,
  handler: (request: Request, ...rest: Rest) => Response | Promise<Response>,
): (request: Request, ...rest: Rest) => Promise<Response>;
