/** Paid routes for Fastify: `app.get('/search', paidRoute(farebox, { tool, price }), handler)`. */
import { signalOf } from './node-response.js';
import { checkPaid, isRefusal, limitTime, openPayment } from './paid.js';
import { chargeHeaders, refusalOf } from './refusals.js';
import { serviceKeyOf } from './service-key.js';

/**
 * The hooks of one route: the price is held before the handler, then captured or released depending on the response's
 * status.
 */
export function paidRoute(farebox, options) {
  checkPaid(options);
  const calls = new WeakMap();
  return {
    async preHandler(request, reply) {
      const signal = signalOf(reply.raw);
      const apiKey = serviceKeyOf(request.headers);
      try {
        const payment = await openPayment(farebox, options, { apiKey, input: [request], signal });
        const stopTimer = limitTime(options, (error) => {
          calls.set(request, { payment, stopTimer, error });
          reply.send(refuse(reply, error));
        });
        calls.set(request, { payment, stopTimer });
        signal.addEventListener('abort', () => {
          stopTimer();
          void payment.release();
        });
      } catch (error) {
        if (!isRefusal(error)) throw error;
        await reply.send(refuse(reply, error));
      }
    },
    async onSend(request, reply, payload) {
      const { payment, stopTimer, error } = calls.get(request) ?? {};
      if (!payment) return payload;
      stopTimer();
      if (error || reply.statusCode >= 400) {
        await payment.release();
        // A handler that answers too late: its answer is not sent.
        return error ? refuse(reply, error) : payload;
      }
      try {
        reply.headers(chargeHeaders(await payment.settle(payload)));
        return payload;
      } catch (failure) {
        if (!isRefusal(failure)) throw failure;
        return refuse(reply, failure);
      }
    },
  };
}

/** Gives the body. */
function refuse(reply, error) {
  const { status, error: facts } = refusalOf(error);
  reply.code(status).type('application/json').removeHeader('content-length');
  return JSON.stringify({ error: facts });
}
