/** Paid routes for Express: `app.get('/search', paidRoute(farebox, { tool, price }), handler)`. */
import { keepBack, signalOf } from './node-response.js';
import { checkPaid, isRefusal, limitTime, openPayment } from './paid.js';
import { chargeHeaders, refusalOf } from './refusals.js';
import { serviceKeyOf } from './service-key.js';

export function paidRoute(farebox, options) {
  checkPaid(options);
  return async (request, response, next) => {
    const signal = signalOf(response);
    const apiKey = serviceKeyOf(request.headers);
    try {
      const payment = await openPayment(farebox, options, { apiKey, input: [request], signal });
      settleBeforeEnd(payment, response, options, signal);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return refuse(response, error);
    }
    return next();
  };
}

/** Keeps the response back until payment is settled, which depends on its status; then adds the receipt as a header. */
function settleBeforeEnd(payment, response, options, signal) {
  const kept = keepBack(response, (body) => {
    stopTimer();
    void settle(payment, response, body, kept.restore);
  });
  const stopTimer = limitTime(options, async (error) => {
    kept.silence();
    await payment.release();
    kept.restore();
    refuse(response, error);
    kept.silence();
  });
  signal.addEventListener('abort', () => {
    stopTimer();
    void payment.release();
  });
}

async function settle(payment, response, body, restore) {
  try {
    const charge = await payment[response.statusCode < 400 ? 'settle' : 'release'](body);
    restore();
    response.setHeaders(new Map(Object.entries(chargeHeaders(charge))));
    response.end(body);
  } catch (error) {
    restore();
    if (isRefusal(error)) refuse(response, error);
    else response.destroy(error);
  }
}

function refuse(response, error) {
  const refusal = refusalOf(error);
  response.removeHeader('content-length');
  response.status(refusal.status).json({ error: refusal.error });
}
