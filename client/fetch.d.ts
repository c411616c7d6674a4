/** Types of paid fetch handlers. */
import type { Farebox, OnUnavailable } from './index.js';
import type { PaidOptions } from './paid.js';

/**
 * Makes a route paid: holds the price, runs the handler, and captures the cost before the response is sent. A status of
 * 400 or above, an exception or a disconnected caller releases the hold. A paid response has the headers X-Charge-Id
 * and X-Charge-Receipt; a refusal has Farebox's status and error. A stream is paid for before it is sent, even if it
 * breaks off later.
 *
 * The consumer's key comes from the request; see `serviceKeyOf`.
 *
 * The handler may declare your framework's request type, such as `NextRequest`.
 *
 * @example export const GET = paidRoute(farebox, { tool: 'search', price: '0.02' }, (request) => Response.json(...));
 */
export declare function paidRoute<Rest extends unknown[], Asked extends Request = Request>(
  farebox: Farebox<OnUnavailable>,
  options: PaidOptions<[Request], Response>,
  handler: (request: Asked, ...rest: Rest) => Response | Promise<Response>,
): (request: Asked, ...rest: Rest) => Promise<Response>;
