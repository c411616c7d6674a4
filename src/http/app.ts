/** The whole stack of the HTTP API, from the outside in. */
import { randomUUIDv7 } from 'node:crypto';
import { Router } from '@koa/router';
import Koa, { type Middleware } from 'koa';
import { ApiError } from '../domain/errors.ts';
import { answerErrors } from './answer-errors.ts';
import type { Api } from './api.ts';
import { getHealth, getReadiness } from './health.ts';
import { errorsPage, topUpPage, topUpScript } from './pages.ts';
import { ENDPOINTS } from './routes.ts';
import { postStripeWebhook } from './webhooks.ts';

export function createApp(api: Api): Koa {
  const app = new Koa();
  app.use(nameRequest);
  app.use(answerErrors(api.log, `${api.config.baseUrl}/docs/errors`));
  const router = new Router();
  for (const { method, path, middleware } of ENDPOINTS) router[method](path, middleware(api));
  router.post('/webhooks/stripe', postStripeWebhook(api));
  router.get('/healthz', getHealth);
  router.get('/readyz', getReadiness(api));
  router.get('/docs/errors', errorsPage);
  router.get('/top-up', topUpPage);
  router.get('/top-up.js', topUpScript);
  app.use(router.routes());
  app.use(refuseUnknown(router));
  // Koa would print the error and answer in plain text; everything is answered above.
  app.on('error', (error) => api.log.warn({ err: error }, 'a response could not be sent'));
  return app;
}

const nameRequest: Middleware = async (ctx, next) => {
  const requestId = `req_${randomUUIDv7().replaceAll('-', '')}`;
  ctx.state['requestId'] = requestId;
  ctx.set('X-Request-Id', requestId);
  await next();
};

/** 405 with Allow where the path exists under other methods, else 404. */
function refuseUnknown(router: Router): Middleware {
  return async (ctx) => {
    const methods = router.stack
      .filter(({ path, regexp }) => path !== '' && regexp?.test(ctx.path))
      .flatMap((layer) => layer.methods);
    if (methods.length === 0) throw new ApiError('not_found', 'There is nothing at this path.');
    ctx.set('Allow', [...new Set(methods)].join(', '));
    throw new ApiError('method_not_allowed', `This path takes ${methods.join(', ')}.`);
  };
}
