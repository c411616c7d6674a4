/** For whatever watches the process: is it alive, and can it take charges. */
import type { Middleware } from 'koa';
import { Type } from 'typebox';
import { row, sql, type Database } from '../../store/database.ts';
import type { Api } from '../services.ts';
import { respondJson } from '../respond.ts';

const oneRow = row(Type.Object({ one: Type.Integer() }));

/** A dependency that has not answered by then counts as down. */
const PROBE_TIMEOUT_MS = 1_000;

export const getHealth: Middleware = async (ctx) => {
  respondJson(ctx, { status: 200, body: { status: 'ok' } });
};

/** 200 when charges can be taken, for which Postgres alone is needed; the rest is for information. */
export function getReadiness(api: Api): Middleware {
  return async (ctx) => {
    const [postgres, temporal] = await Promise.all([
      inTime(isDatabaseUp(api.database)),
      inTime(api.isTemporalUp()),
    ]);
    respondJson(ctx, {
      status: postgres ? 200 : 503,
      body: {
        status: postgres ? 'ready' : 'unavailable',
        dependencies: { postgres: stateOf(postgres), temporal: stateOf(temporal) },
      },
      ...(postgres ? {} : { headers: { 'Retry-After': '1' } }),
    });
  };
}

const stateOf = (isUp: boolean) => (isUp ? 'up' : 'down');

async function isDatabaseUp(database: Database): Promise<boolean> {
  await database.one(sql.type(oneRow)`select 1 as one`);
  return true;
}

async function inTime(probe: Promise<boolean>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), PROBE_TIMEOUT_MS);
  });
  try {
    return await Promise.race([probe.catch(() => false), timeout]);
  } finally {
    clearTimeout(timer);
  }
}
