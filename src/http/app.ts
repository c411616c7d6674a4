/** The complete middleware stack of the HTTP API, outermost first. */
import { Router } from '@koa/router';
import Koa, { type Context, type Middleware } from 'koa';
import { ApiError } from '../domain/errors.ts';
import { methodNotAllowed } from './method-not-allowed.ts';
import { answerErrors, asPage } from './answer-errors.ts';
import type { Api } from './services.ts';
import { approvalPage, postApprovalPage } from './handlers/approvals/approval-page.ts';
import { apiReferencePages } from './handlers/api-reference.ts';
import { getHealth, getReadiness } from './handlers/health.ts';
import { consolePages } from './handlers/console-pages.ts';
import { getDevMail } from './handlers/dev-mail.ts';
import { errorPage, errorsPage } from './handlers/error-pages.ts';
import { pagesStyle } from './handlers/html-pages.ts';
import { markdownPages, OPENAPI_PATH } from './handlers/markdown-pages.ts';
import { confirmPages } from './handlers/top-ups/confirm-page.ts';
import { postTopUpPage, topUpPage } from './handlers/top-ups/top-up-page.ts';
import { getLlms, getOpenApi } from './handlers/openapi.ts';
import type { Endpoint } from './endpoint.ts';
import { ENDPOINTS } from './routes.ts';
import { postStripeWebhook } from './handlers/top-ups/stripe-webhook.ts';
import { tracedRequests } from './traced-requests.ts';

export function createApp(api: Api): Koa {
  const app = new AnsweringKoa();
  if (api.tracing) app.use(tracedRequests(api.tracing));
  app.use(answerErrors(api.log, api.config.baseUrl, api.responses));
  const confirm = confirmPages(api);
  const openApi = getOpenApi(ENDPOINTS);
  const all: readonly Route[] = [
    ...ENDPOINTS.map(({ method, path, middleware }) => ({
      method,
      path,
      middleware: middleware(api),
    })),
    { method: 'post', path: '/webhooks/stripe', middleware: postStripeWebhook(api) },
    { method: 'get', path: '/healthz', middleware: getHealth },
    { method: 'get', path: '/readyz', middleware: getReadiness(api) },
    { method: 'get', path: '/openapi.json', middleware: openApi },
    { method: 'get', path: `/${OPENAPI_PATH}`, middleware: openApi },
    { method: 'get', path: '/llms.txt', middleware: getLlms(ENDPOINTS) },
    // Before the page of an error code, whose path fits its Markdown too.
    ...markdownPages(ENDPOINTS),
    { method: 'get', path: '/docs/errors', middleware: errorsPage },
    { method: 'get', path: '/docs/errors/:code', middleware: errorPage(ENDPOINTS) },
    { method: 'get', path: '/dev/mail', middleware: getDevMail(api) },
    { method: 'get', path: '/pages.css', middleware: pagesStyle },
    { method: 'get', path: '/top-up', middleware: asPage(topUpPage(api)) },
    { method: 'post', path: '/top-up', middleware: asPage(postTopUpPage(api)) },
    { method: 'get', path: '/approval', middleware: asPage(approvalPage(api)) },
    { method: 'post', path: '/approval', middleware: asPage(postApprovalPage(api)) },
    { method: 'get', path: '/top-up/confirm', middleware: asPage(confirm.get) },
    { method: 'post', path: '/top-up/confirm', middleware: asPage(confirm.post) },
    ...apiReferencePages(),
  ];
  const routes = all.map(({ method, path, middleware }) => ({
    method,
    path,
    middleware: api.responses.counted(method, path, middleware),
  }));
  const router = new Router();
  for (const { method, path, middleware } of routes) router[method](path, middleware);
  app.use(routeExact(routes));
  app.use(router.routes());
  app.use(consolePages(api));
  app.use(refuseUnknown(router));
  // Koa would print the error and answer in plain text; the middleware above has already answered.
  app.on('error', (error) => api.log.warn({ err: error }, 'a response could not be sent'));
  return app;
}

/**
 * respond.ts, csv.ts and event-stream.ts write all responses, so Koa has nothing to write and need not watch
 * how each response ends. Watching alone would be a tenth of the garbage that a charge creates.
 */
class AnsweringKoa extends Koa {
  handleRequest(ctx: Context, middleware: (ctx: Context) => Promise<void>): Promise<void> {
    return middleware(ctx).catch((error: Error) => ctx.onerror(error));
  }
}

interface Route {
  readonly method: Endpoint['method'];
  readonly path: string;
  readonly middleware: Middleware;
}

/**
 * A route's path without parameters takes one look-up, not a scan of every route's pattern. Only its own methods apply:
 * `GET /v1/charges/batch` is not a request for a charge with the id "batch".
 */
function routeExact(routes: readonly Route[]): Middleware {
  const exact = new Map<string, Map<string, Middleware>>();
  for (const [path, ofPath] of Map.groupBy(routes, (route) => route.path)) {
    exact.set(
      path,
      new Map(ofPath.map(({ method, middleware }) => [method.toUpperCase(), middleware])),
    );
  }
  return (ctx, next) => {
    const byMethod = exact.get(ctx.req.url ?? '') ?? exact.get(ctx.path);
    const middleware = byMethod?.get(ctx.req.method ?? '');
    if (middleware) return middleware(ctx, next);
    if (byMethod && !(ctx.req.method === 'HEAD' && byMethod.has('GET'))) {
      throw methodNotAllowed(withHead([...byMethod.keys()]));
    }
    return next();
  };
}

/** 405 with Allow where the path exists under other methods, else 404. */
function refuseUnknown(router: Router): Middleware {
  return async (ctx) => {
    const methods = router.stack
      .filter(({ path, regexp }) => path !== '' && regexp?.test(ctx.path))
      .flatMap((layer) => layer.methods);
    if (methods.length === 0) throw new ApiError('not_found', 'This path does not exist.');
    throw methodNotAllowed(withHead(methods));
  };
}

/** A path that accepts GET accepts HEAD. */
function withHead(methods: readonly string[]): ReadonlySet<string> {
  return new Set(methods.includes('GET') ? ['HEAD', ...methods] : methods);
}
