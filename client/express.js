/** Paid routes for Express: `app.get('/search', paidRoute(farebox, { tool, price }), handler)`. */
import { signalOf } from './node-response.js';
import { isRefusal, openPayment } from './paid.js';
import { chargeHeaders, refusalOf } from './refusals.js';
import { serviceKeyOf } from './service-key.js';

export function paidRoute(farebox, options) {
  return async (request, response, next) => {
    const signal = signalOf(response);
    const apiKey = serviceKeyOf(request.headers);
    try {
      const payment = await openPayment(farebox, options, { apiKey, input: [request], signal });
      signal.addEventListener('abort', () => void payment.release());
      settleBeforeEnd(payment, response);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return refuse(response, error);
    }
    return next();
  };
}

/** Keeps the response back until payment is settled, which depends on its status; then adds the receipt as a header. */
function settleBeforeEnd(payment, response) {
  const { end, write, writeHead } = response;
  const chunks = [];
  const keep = (chunk, encoding) => {
    if (chunk && typeof chunk !== 'function') chunks.push(Buffer.from(chunk, encoding));
    return true;
  };
  const settle = async () => {
    const body = Buffer.concat(chunks);
    try {
      const charge = await payment[response.statusCode < 400 ? 'settle' : 'release'](body);
      response.setHeaders(new Map(Object.entries(chargeHeaders(charge))));
      response.end(body);
    } catch (error) {
      if (isRefusal(error)) refuse(response, error);
      else response.destroy(error);
    }
  };
  response.write = keep;
  response.writeHead = (status, ...rest) => {
    response.statusCode = status;
    response.setHeaders(new Map(Object.entries(rest.at(-1) ?? {})));
    return response;
  };
  response.end = (...last) => {
    keep(...last);
    Object.assign(response, { end, write, writeHead });
    void settle();
    return response;
  };
}

function refuse(response, error) {
  const refusal = refusalOf(error);
  response.removeHeader('content-length');
  response.status(refusal.status).json({ error: refusal.error });
}
