/** The whole stack of the HTTP API, from the outside in. */
import { Router } from '@koa/router';
import Koa, { type Context, type Middleware } from 'koa';
import { ApiError } from '../domain/errors.ts';
import { answerErrors } from './answer-errors.ts';
import type { Api } from './services.ts';
import { apiReferencePages } from './handlers/api-reference.ts';
import { getHealth, getReadiness } from './handlers/health.ts';
import { getLlms, getOpenApi } from './handlers/openapi.ts';
import { errorsPage, topUpPage, topUpScript } from './handlers/html-pages.ts';
import type { Endpoint } from './endpoint.ts';
import { getPublicKeys } from './handlers/charges/receipts.ts';
import { ENDPOINTS } from './routes.ts';
import { postStripeWebhook } from './handlers/top-ups/webhooks.ts';

export function createApp(api: Api): Koa {
  const app = new AnsweringKoa();
  app.use(answerErrors(api.log, `${api.config.baseUrl}/docs/errors`));
  const routes: readonly Route[] = [
    ...ENDPOINTS.map(({ method, path, middleware }) => ({
      method,
      path,
      middleware: middleware(api),
    })),
    { method: 'post', path: '/webhooks/stripe', middleware: postStripeWebhook(api) },
    { method: 'get', path: '/healthz', middleware: getHealth },
    { method: 'get', path: '/readyz', middleware: getReadiness(api) },
    { method: 'get', path: '/openapi.json', middleware: getOpenApi(ENDPOINTS) },
    { method: 'get', path: '/llms.txt', middleware: getLlms(ENDPOINTS) },
    { method: 'get', path: '/v1/receipts/public-keys', middleware: getPublicKeys(api) },
    { method: 'get', path: '/docs/errors', middleware: errorsPage },
    ...apiReferencePages(),
    { method: 'get', path: '/top-up', middleware: topUpPage },
    { method: 'get', path: '/top-up.js', middleware: topUpScript },
  ];
  const router = new Router();
  for (const { method, path, middleware } of routes) router[method](path, middleware);
  app.use(routeExact(routes));
  app.use(router.routes());
  app.use(refuseUnknown(router));
  // Koa would print the error and answer in plain text; everything is answered above.
  app.on('error', (error) => api.log.warn({ err: error }, 'a response could not be sent'));
  return app;
}

/**
 * All answers are written by respond.ts and csv.ts, so Koa has none to write, and need not watch how each
 * ends: that alone is a tenth of what a charge leaves to the garbage collector.
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
 * A path that a route names to the letter needs one look-up, not a walk over every route's pattern. It has the
 * methods of its own alone: `GET /v1/charges/batch` does not ask for a charge called batch.
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
    const byMethod = exact.get(ctx.req.url ?? '');
    const middleware = byMethod?.get(ctx.req.method ?? '');
    if (middleware) return middleware(ctx, next);
    if (byMethod && !(ctx.req.method === 'HEAD' && byMethod.has('GET'))) {
      throw methodNotAllowed([...byMethod.keys()]);
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
    if (methods.length === 0) throw new ApiError('not_found', 'There is nothing at this path.');
    throw methodNotAllowed(methods);
  };
}

/** Whatever takes GET takes HEAD. */
function methodNotAllowed(methods: readonly string[]): ApiError {
  const known = methods.includes('GET') ? ['HEAD', ...methods] : methods;
  const allow = [...new Set(known)].join(', ');
  return new ApiError('method_not_allowed', `This path takes ${allow}.`, { allow });
}
