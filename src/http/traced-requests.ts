/**
 * A span for each request, in the caller's trace if it brought a `traceparent`. It names the route and never
 * the path or the query, which hold ids and the tokens of links.
 */
import type { Middleware } from 'koa';
import { markFailed, SpanKind, type Tracing } from '../tracing/tracing.ts';
import { requestIdOf } from './respond.ts';

/** Load balancers ask every few seconds. */
const UNTRACED = new Set(['/healthz', '/readyz']);

export function tracedRequests(tracing: Tracing): Middleware {
  return (ctx, next) => {
    const { method, headers, url } = ctx.req;
    if (UNTRACED.has(url ?? '')) return next();
    const parent = tracing.broughtBy(headers);
    return tracing.inSpan(method ?? '', { kind: SpanKind.SERVER, parent }, async (span) => {
      await next();
      const route = (ctx.state['tally'] as { readonly route: string } | undefined)?.route;
      const status = ctx.res.statusCode;
      if (route !== undefined) span.updateName(`${method} ${route}`);
      span.setAttributes({
        'http.request.method': method,
        ...(route !== undefined && { 'http.route': route }),
        'http.response.status_code': status,
        'farebox.request_id': requestIdOf(ctx),
      });
      const code = ctx.state['errorCode'] as string | undefined;
      if (code === undefined) return;
      if (status >= 500) markFailed(span, code);
      else span.setAttribute('error.type', code);
    });
  };
}
