/**
 * Stripe's HTTP client with a span for each call. The span has the path without ids and without its query, and Stripe's
 * request id. The trace ends there: Stripe is told nothing of it.
 */
import type { Stripe } from 'stripe';
import { markFailed, SpanKind, type Tracing } from '../tracing/tracing.ts';

export function tracedHttpClient(plain: Stripe.HttpClient, tracing: Tracing): Stripe.HttpClient {
  return {
    getClientName: () => plain.getClientName(),
    makeRequest: (host, port, path, method, ...others) => {
      const template = templateOf(path);
      const attributes = {
        'http.request.method': method,
        'url.template': template,
        'server.address': host,
      };
      return tracing.inSpan(
        `${method} ${template}`,
        { kind: SpanKind.CLIENT, attributes },
        async (span) => {
          const response = await plain.makeRequest(host, port, path, method, ...others);
          const status = response.getStatusCode();
          span.setAttribute('http.response.status_code', status);
          const requestId: unknown = response.getHeaders()['request-id'];
          if (typeof requestId === 'string') span.setAttribute('stripe.request_id', requestId);
          if (status >= 400) markFailed(span, String(status));
          return response;
        },
      );
    },
  };
}

/** `/v1/checkout/sessions/:id/expire`. Stripe's words have neither digits nor capitals, and its ids do. */
function templateOf(path: string): string {
  const [bare = ''] = path.split('?', 1);
  return bare.replaceAll(/\/(?!v\d\/)[^/]*[\dA-Z][^/]*/g, '/:id');
}
