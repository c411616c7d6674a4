/** Paid routes for Express: `app.get('/search', paidRoute(farebox, { tool, price }), handler)`. */
import { refuse, settleBeforeEnd } from './node-payment.js';
import { signalOf } from './node-response.js';
import { checkPaid, isRefusal, openPayment } from './paid.js';
import { serviceKeyOf } from './service-key.js';

export function paidRoute(farebox, options) {
  checkPaid(options);
  return async (request, response, next) => {
    const signal = signalOf(response);
    const apiKey = serviceKeyOf(request.headers);
    try {
      const payment = await openPayment(farebox, options, { apiKey, input: [request], signal });
      settleBeforeEnd(farebox, payment, response, options, signal, { fail: next });
    } catch (error) {
      // Express 4 does not wait for what a middleware returns.
      if (!isRefusal(error)) return next(error);
      try {
        return refuse(response, error);
      } catch (failure) {
        return next(failure);
      }
    }
    return next();
  };
}
