/** A Worker with one client in module scope, as an edge deployment has it. The test bundles it. */
import { Farebox, FareboxError } from '@farebox/client';
import { paidRoute } from '@farebox/client/fetch';

const { FAREBOX_URL: baseUrl, FAREBOX_SECRET_KEY: secretKey } = process.env;
const farebox = new Farebox({ baseUrl, secretKey });

const LEASE = { apiKey: 'fare_ck_live_x', tools: ['edge'], amount: 1 };

const wrong = new Farebox({ baseUrl, secretKey: 'fare_sk_test_wrong' });
const unbilled = paidRoute(wrong, { tool: 'edge', price: 1 }, async () => new Response('ran'));

async function served(request: Request): Promise<object> {
  const { pathname, searchParams } = new URL(request.url);
  if (pathname === '/verify') return farebox.verifyReceipt(searchParams.get('receipt') ?? '');
  if (pathname === '/lease') return farebox.lease(LEASE).catch(({ message }) => ({ message }));
  const apiKey = request.headers.get('x-service-key') ?? undefined;
  return farebox.charge({ apiKey, tool: 'edge', amount: 0.01 });
}

export default {
  fetch: async (request: Request): Promise<Response> => {
    if (request.url.endsWith('/unbilled')) return unbilled(request);
    try {
      return Response.json(await served(request));
    } catch (error) {
      if (!FareboxError.isInstance(error)) throw error;
      return Response.json({ code: error.code, outcome: error.outcome }, { status: 502 });
    }
  },
};
