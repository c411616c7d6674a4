/** When an agent is called again: soon at first, then every minute, until the invocation's deadline. */
import assert from 'node:assert/strict';
import { readConfig } from '../../src/config.ts';
import { MINUTE_MS } from '../../src/domain/durations.ts';
import { retryDelayMs } from '../../src/domain/invocation.ts';

const { invocationDeadlineMs, agentTimeoutMs } = readConfig({
  DATABASE_URL: 'postgres://127.0.0.1/none',
  MASTER_SECRET: 'A'.repeat(43),
  TEMPORAL_ADDRESS: '127.0.0.1:9',
  STRIPE_SECRET_KEY: 'sk_test_none',
  STRIPE_WEBHOOK_SECRET: 'whsec_none',
});

/** When the attempts start, with default settings, if each fails after this time. */
function attemptsAtMs(failsAfterMs: number, chance: () => number): number[] {
  const times: number[] = [];
  for (let atMs = 0, failures = 0; atMs < invocationDeadlineMs;) {
    times.push(atMs);
    failures += 1;
    atMs += failsAfterMs + retryDelayMs(failures, chance());
  }
  return times;
}

describe('the attempts of an invocation', () => {
  for (const [what, failsAfterMs] of [
    ['is gone', 0],
    ['hangs', agentTimeoutMs],
  ] as const) {
    it(`reach an agent that ${what}, after any outage, in time`, () => {
      for (const chance of [() => 0, () => 1, Math.random]) {
        const times = attemptsAtMs(failsAfterMs, chance);
        const gaps = times.slice(1).map((atMs, n) => atMs - (times[n] ?? 0));
        const gapMsMax = 1.25 * MINUTE_MS + failsAfterMs;
        assert.ok(Math.max(...gaps) <= gapMsMax);
        assert.ok((times.at(-1) ?? 0) >= invocationDeadlineMs - gapMsMax);
        assert.ok(invocationDeadlineMs > 10 * MINUTE_MS);
      }
    });
  }

  it('are frequent at first', () => {
    const first = attemptsAtMs(0, () => 1).slice(1, 4);
    assert.deepEqual(first, [1_250, 3_750, 8_750]);
  });

  it('never come sooner than three quarters of a second after the last', () => {
    for (let failures = 1; failures < 2_000; failures += 1) {
      assert.ok(retryDelayMs(failures, 0) >= 750);
    }
  });
});
