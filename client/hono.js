/** Paid routes for Hono: `app.get('/search', paidRoute(farebox, { tool, price }), handler)`. */
import { discard, hasFailed, isResponse, noResponse } from './fetch-response.js';
import { checkPaid, isRefusal, runPaid } from './paid.js';
import { chargeHeaders, refusalOf } from './refusals.js';
import { serviceKeyOf } from './service-key.js';

export function paidRoute(farebox, options) {
  checkPaid(options);
  return async (context, next) => {
    // Reading `context.res` would make a response, into which Hono copies the handler's: that of a protocol
    // switch cannot be.
    const before = new Headers(context.body(null).headers);
    try {
      const { charge } = await runPaid(farebox, options, {
        apiKey: serviceKeyOf(context.req.raw.headers),
        input: [context],
        signal: context.req.raw.signal,
        // By then, Hono has turned an exception of the handler into a response.
        run: async () => {
          await next();
          if (context.finalized && !isResponse(context.res)) {
            // Hono would take headers from it for the response of its error handler.
            context.res = undefined;
            throw noResponse();
          }
          return context;
        },
        // A handler that forgot to return its response. Hono fails then.
        hasFailed: ({ finalized, res }) => !finalized || hasFailed(res),
      });
      if (context.res.status === 101) return undefined;
      for (const header of Object.entries(chargeHeaders(charge))) context.header(...header);
      return undefined;
    } catch (error) {
      if (context.finalized) discard(context.res.body);
      if (!isRefusal(error)) throw error;
      const { status, headers, error: facts } = refusalOf(error);
      // A response that was not paid for is not sent, nor are its headers.
      context.res = undefined;
      for (const header of Object.entries(headers)) before.set(...header);
      context.res = Response.json({ error: facts }, { status, headers: before });
      return undefined;
    }
  };
}
