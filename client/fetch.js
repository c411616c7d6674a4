/** Paid fetch handlers: Workers, Next.js route handlers, Deno, Bun. */
import { discard, hasFailed, isResponse, noResponse } from './fetch-response.js';
import { checkHandler, checkPaid, isRefusal, runPaid } from './paid.js';
import { chargeHeaders, refusalOf } from './refusals.js';
import { serviceKeyOf } from './service-key.js';

export function paidRoute(farebox, options, handler) {
  checkPaid(options);
  checkHandler(handler);
  return async (request, ...rest) => {
    let made;
    let isOver = false;
    try {
      const { result, charge } = await runPaid(farebox, options, {
        apiKey: serviceKeyOf(request.headers),
        input: [request],
        signal: request.signal,
        run: async () => {
          made = await handler(request, ...rest);
          // The answer came too late.
          if (isOver) discard(made?.body);
          if (!isResponse(made)) throw noResponse();
          return made;
        },
        hasFailed,
      });
      // The response of a protocol switch, such as to WebSocket, cannot be copied.
      if (result.status === 101) return result;
      const response = new Response(result.body, result);
      for (const header of Object.entries(chargeHeaders(charge))) response.headers.set(...header);
      return response;
    } catch (error) {
      isOver = true;
      discard(made?.body);
      if (!isRefusal(error)) throw error;
      const { error: facts, ...init } = refusalOf(error);
      return Response.json({ error: facts }, init);
    }
  };
}
