/** Paid routes for Fastify: `app.get('/search', paidRoute(farebox, { tool, price }), handler)`. */
import { signalOf } from './node-response.js';
import { isRefusal, openPayment } from './paid.js';
import { chargeHeaders, refusalOf } from './refusals.js';
import { serviceKeyOf } from './service-key.js';

/**
 * The hooks of one route: the price is held before the handler, then captured or released depending on the response's
 * status.
 */
export function paidRoute(farebox, options) {
  const payments = new WeakMap();
  return {
    async preHandler(request, reply) {
      const signal = signalOf(reply.raw);
      const apiKey = serviceKeyOf(request.headers);
      try {
        const payment = await openPayment(farebox, options, { apiKey, input: [request], signal });
        payments.set(request, payment);
        signal.addEventListener('abort', () => void payment.release());
      } catch (error) {
        if (!isRefusal(error)) throw error;
        const refusal = refusalOf(error);
        await reply.code(refusal.status).send({ error: refusal.error });
      }
    },
    async onSend(request, reply, payload) {
      const payment = payments.get(request);
      if (!payment) return payload;
      payments.delete(request);
      if (reply.statusCode >= 400) {
        await payment.release();
        return payload;
      }
      try {
        reply.headers(chargeHeaders(await payment.settle(payload)));
        return payload;
      } catch (error) {
        if (!isRefusal(error)) throw error;
        const refusal = refusalOf(error);
        reply
          .code(refusal.status)
          .header('content-type', 'application/json')
          .removeHeader('content-length');
        return JSON.stringify({ error: refusal.error });
      }
    },
  };
}
