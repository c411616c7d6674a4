/** Paid routes for Fastify: `app.get('/search', paidRoute(farebox, { tool, price }), handler)`. */
import { decide, failHijacked, refuse, refuseAtOnce, undo } from './fastify-refusal.js';
import { settleBeforeEnd } from './node-payment.js';
import { signalOf } from './node-response.js';
import { checkPaid, openPayment } from './paid.js';
import { serviceKeyOf } from './service-key.js';

/**
 * The hooks of one route: the price is held before the handler, then captured or released depending on the response's
 * status. `onSend` does not run for a handler that writes to `reply.raw`, so that response is kept back until it ends.
 */
export function paidRoute(farebox, options) {
  checkPaid(options);
  const calls = new WeakMap();
  return {
    async preHandler(request, reply) {
      const signal = signalOf(reply.raw);
      const apiKey = serviceKeyOf(request.headers);
      const before = reply.getHeaders();
      try {
        const payment = await openPayment(farebox, options, { apiKey, input: [request], signal });
        const answers = (error) => {
          // Nothing can have been sent, so the handler has hijacked the reply, and `onSend` will not run.
          if (reply.sent) return false;
          calls.set(request, { payment, kept, before, error });
          refuseAtOnce(reply, error, before);
          return true;
        };
        const ends = { answers, fail: (error) => failHijacked(request, reply, error) };
        const kept = settleBeforeEnd(farebox, payment, reply.raw, options, signal, ends);
        calls.set(request, { payment, kept, before });
      } catch (error) {
        await reply.send(refuse(reply, error, before));
      }
    },
    async onSend(request, reply, payload) {
      const call = calls.get(request);
      if (!call) return payload;
      if (!call.decided) return await (call.decided = decide(call, reply, payload));
      // A handler that returns nothing after it has sent its answer, or throws, or a hook that throws.
      await call.decided;
      return undo(farebox, reply, call.charge, payload);
    },
  };
}
