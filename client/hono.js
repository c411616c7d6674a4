/** Paid routes for Hono: `app.get('/search', paidRoute(farebox, { tool, price }), handler)`. */
import { checkPaid, isRefusal, runPaid } from './paid.js';
import { chargeHeaders, refusalOf } from './refusals.js';
import { serviceKeyOf } from './service-key.js';

export function paidRoute(farebox, options) {
  checkPaid(options);
  return async (context, next) => {
    const before = new Headers(context.res.headers);
    try {
      const { charge } = await runPaid(farebox, options, {
        apiKey: serviceKeyOf(context.req.raw.headers),
        input: [context],
        signal: context.req.raw.signal,
        // By then, Hono has turned an exception of the handler into a response.
        run: async () => {
          await next();
          return context;
        },
        hasFailed: ({ res }) => res.status >= 400,
      });
      for (const header of Object.entries(chargeHeaders(charge))) context.header(...header);
      return undefined;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const refusal = refusalOf(error);
      // A response that was not paid for is not sent, nor are its headers.
      context.res = undefined;
      context.res = Response.json(
        { error: refusal.error },
        { status: refusal.status, headers: before },
      );
      return undefined;
    }
  };
}
