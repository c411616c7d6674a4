/** Paid routes for Koa: `router.get('/search', paidRoute(farebox, { tool, price }), handler)`. */
import { discard, isSpent } from './fetch-response.js';
import { Written } from './koa-written.js';
import { refundIfUnsent } from './node-payment.js';
import { hasFailedStatus, isReadToEnd, signalOf } from './node-response.js';
import { checkPaid, isRefusal, runPaid } from './paid.js';
import { chargeHeaders, refusalOf } from './refusals.js';
import { serviceKeyOf } from './service-key.js';

export function paidRoute(farebox, options) {
  checkPaid(options);
  return async (context, next) => {
    const written = new Written(context);
    let refuse;
    try {
      const { charge } = await runPaid(farebox, options, {
        apiKey: serviceKeyOf(context.req.headers),
        input: [context],
        signal: signalOf(context.res),
        run: async () => {
          written.keep();
          await next();
          if (refuse) {
            // The answer came too late. A middleware that still waits must not let it pass.
            discard(context.body);
            refuse();
          }
          await written.end();
          // Makes Koa serialize the body, as it does later to send it. What cannot be serialized throws here.
          if (context.respond !== false) void context.length;
          return context;
        },
        // Koa does not send the body of a handler that has written to Node's response itself, and may have
        // read it for that.
        hasFailed: ({ res, body, respond }) =>
          hasFailedStatus(res) || (respond !== false && (isSpent(body) || isReadToEnd(body))),
      });
      written.restore();
      context.set(chargeHeaders(charge));
      refundIfUnsent(farebox, charge, context.res);
      written.send();
    } catch (error) {
      discard(context.body);
      written.restore();
      if (!isRefusal(error)) throw error;
      written.ignore();
      const refusal = refusalOf(error);
      refuse = () => {
        context.status = refusal.status;
        context.set(refusal.headers);
        context.body = { error: refusal.error };
      };
      refuse();
    }
  };
}
