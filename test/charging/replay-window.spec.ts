/** The range of time in which the charges of a lease are searched. */
import assert from 'node:assert/strict';
import { replayWindowOfLease } from '../../src/charging/replay-window.ts';
import { DAY_MS, HOUR_MS } from '../../src/domain/durations.ts';
import { HOLD_SECONDS_MAX } from '../../src/domain/hold.ts';
import { uuidFloor, uuidTimeMs } from '../../src/domain/ids.ts';

describe('the search for a call of a lease', () => {
  const nowMs = Date.UTC(2026, 10, 28, 12);

  for (const days of [0, 1, 30, 62, 700]) {
    it(`covers all calls of a lease that was placed ${days} days ago`, () => {
      const placedMs = nowMs - days * DAY_MS;
      const { fromId, toId } = replayWindowOfLease(uuidFloor(placedMs), nowMs);
      const lastMs = Math.min(placedMs + HOLD_SECONDS_MAX * 1_000, nowMs);
      assert.ok(uuidTimeMs(fromId) < placedMs - 23 * HOUR_MS);
      assert.ok(uuidTimeMs(toId) > lastMs + 23 * HOUR_MS);
    });
  }

  it('does not read the months since an old lease ended', () => {
    const placedMs = nowMs - 700 * DAY_MS;
    const { fromId, toId } = replayWindowOfLease(uuidFloor(placedMs), nowMs);
    assert.ok(uuidTimeMs(toId) - uuidTimeMs(fromId) < 4 * DAY_MS);
  });
});
