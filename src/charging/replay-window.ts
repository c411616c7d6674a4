/** The range of charges searched for an idempotency key, as ids, which begin with a timestamp. */
import { uuidFloor } from '../domain/ids.ts';
import type { ReplayWindow } from '../store/charges/post-charges.ts';
import { CLOCK_AHEAD_MS_MAX, IDEMPOTENCY_RETENTION_MS } from './limits.ts';

/** `nowMs` is the time of Postgres' clock. */
export function replayWindow(nowMs: number): ReplayWindow {
  return {
    fromId: uuidFloor(Math.floor(nowMs - IDEMPOTENCY_RETENTION_MS)),
    toId: uuidFloor(Math.floor(nowMs + CLOCK_AHEAD_MS_MAX)),
  };
}
