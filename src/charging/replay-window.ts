/** The range of charges that is searched for an idempotency key, as ids, which begin with a timestamp. */
import { HOLD_SECONDS_MAX } from '../domain/hold.ts';
import { TIME_MS_MAX, uuidFloor, uuidTimeMs } from '../domain/ids.ts';
import type { ReplayWindow } from '../store/charges/post-charges.ts';
import { CLOCK_AHEAD_MS_MAX, IDEMPOTENCY_RETENTION_MS } from './limits.ts';

/** `nowMs` is the time of Postgres' clock. */
export function replayWindow(nowMs: number): ReplayWindow {
  return {
    fromId: uuidFloor(Math.floor(nowMs - IDEMPOTENCY_RETENTION_MS)),
    toId: uuidFloor(Math.floor(nowMs + CLOCK_AHEAD_MS_MAX)),
  };
}

/**
 * The same for the calls of a lease. They are known as long as the lease itself, because a journal may send
 * them again at any time. They have later times than the lease, unless the clock was set back, and none is
 * charged after the longest life of a lease: so an old lease is not looked up in all the months since.
 */
export function replayWindowOfLease(leaseId: string, nowMs: number): ReplayWindow {
  const { fromId, toId } = replayWindow(nowMs);
  const placedMs = uuidTimeMs(leaseId);
  const placedId = uuidFloor(Math.max(placedMs - CLOCK_AHEAD_MS_MAX, 0));
  const endedMs = placedMs + HOLD_SECONDS_MAX * 1_000 + CLOCK_AHEAD_MS_MAX;
  const endedId = uuidFloor(Math.min(endedMs, TIME_MS_MAX));
  return {
    fromId: placedId < fromId ? placedId : fromId,
    toId: endedId < toId ? endedId : toId,
  };
}
