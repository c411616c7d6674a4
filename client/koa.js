/** Paid routes for Koa: `router.get('/search', paidRoute(farebox, { tool, price }), handler)`. */
import { Written } from './koa-written.js';
import { signalOf } from './node-response.js';
import { checkPaid, isRefusal, runPaid } from './paid.js';
import { chargeHeaders, refusalOf } from './refusals.js';
import { serviceKeyOf } from './service-key.js';

export function paidRoute(farebox, options) {
  checkPaid(options);
  return async (context, next) => {
    const written = new Written(context);
    try {
      const { charge } = await runPaid(farebox, options, {
        apiKey: serviceKeyOf(context.req.headers),
        input: [context],
        signal: signalOf(context.res),
        run: async () => {
          written.keep();
          await next();
          await written.end();
          return context;
        },
        hasFailed: ({ status }) => status >= 400,
      });
      written.restore();
      context.set(chargeHeaders(charge));
      written.send();
    } catch (error) {
      written.restore();
      if (!isRefusal(error)) throw error;
      written.ignore();
      const refusal = refusalOf(error);
      context.status = refusal.status;
      context.body = { error: refusal.error };
    }
  };
}
