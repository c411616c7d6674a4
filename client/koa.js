/** Paid routes for Koa: `router.get('/search', paidRoute(farebox, { tool, price }), handler)`. */
import { signalOf } from './node-response.js';
import { checkPaid, isRefusal, runPaid } from './paid.js';
import { chargeHeaders, refusalOf } from './refusals.js';
import { serviceKeyOf } from './service-key.js';

export function paidRoute(farebox, options) {
  checkPaid(options);
  return async (context, next) => {
    try {
      const { charge } = await runPaid(farebox, options, {
        apiKey: serviceKeyOf(context.req.headers),
        input: [context],
        signal: signalOf(context.res),
        run: async () => {
          await next();
          return context;
        },
        hasFailed: ({ status }) => status >= 400,
      });
      context.set(chargeHeaders(charge));
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const refusal = refusalOf(error);
      context.status = refusal.status;
      context.body = { error: refusal.error };
    }
  };
}
