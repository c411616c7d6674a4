/** Health checks for monitoring: whether the process is alive, and whether it can take charges. */
import type { Middleware } from 'koa';
import { canCharge } from '../readiness.ts';
import type { Api } from '../services.ts';
import { respondJson } from '../respond.ts';

export const getHealth: Middleware = async (ctx) => {
  respondJson(ctx, { status: 200, body: { status: 'ok' } });
};

/** 200 when charges can be taken. */
export function getReadiness(api: Api): Middleware {
  return async (ctx) => {
    const dependencies = await api.readiness.check();
    const isReady = canCharge(dependencies);
    respondJson(ctx, {
      status: isReady ? 200 : 503,
      body: { status: isReady ? 'ready' : 'unavailable', dependencies },
      ...(isReady ? {} : { headers: { 'Retry-After': '1' } }),
    });
  };
}
