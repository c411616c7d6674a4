/**
 * Decisions of the client under a lease, in one process, while it settles them with a real API:
 * `bin/farebox exec node bench/leases.ts [--seconds 3]`. It writes nothing. What is not settled at the end expires.
 */
import { parseArgs } from 'node:util';
import { Farebox } from '../client/index.js';
import { startTestApi } from '../test/support/api.ts';
import { makeLeasable } from '../test/support/lease-requests.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../test/support/setup.ts';
import { latenciesOf } from './latencies.ts';

/** Calls between two turns of the event loop, as in a busy server. */
const CALLS_A_TURN = 1_000;
const WARM_UP_CALLS = 200_000;
const TARGETS = { perSecond: 500_000, p99Microseconds: 50 } as const;

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '3' } } });

await mochaGlobalSetup();
try {
  const api = await startTestApi();
  const account = await api.createAccount(1_000);
  const { spendKey } = await makeLeasable(api, account.consumerKey);
  const farebox = new Farebox({ secretKey: account.developerKey, baseUrl: api.url });
  let settled = 0;
  const lease = await farebox.lease({
    apiKey: spendKey,
    tools: [{ name: 'search', price: 0.000_001 }],
    amount: 400,
    onSettled: (results) => {
      settled += results.length;
    },
  });
  const latenciesMs: number[] = [];
  let busyMs = 0;
  const turn = async () => {
    const startedAt = performance.now();
    let before = startedAt;
    for (let n = 0; n < CALLS_A_TURN; n += 1) {
      lease.charge({ tool: 'search' });
      const now = performance.now();
      latenciesMs.push(now - before);
      before = now;
    }
    busyMs += before - startedAt;
    await new Promise(setImmediate);
  };
  while (latenciesMs.length < WARM_UP_CALLS) await turn();
  latenciesMs.length = 0;
  busyMs = 0;
  settled = 0;
  const startedAt = performance.now();
  while (performance.now() - startedAt < Number(values.seconds) * 1_000) await turn();
  const seconds = (performance.now() - startedAt) / 1_000;
  const perSecond = Math.round(latenciesMs.length / seconds);
  const { p50Ms, p99Ms } = latenciesOf(latenciesMs);
  const p99Microseconds = p99Ms * 1_000;
  process.stdout.write(
    `${perSecond} decisions a second (target ${TARGETS.perSecond}), with ${Math.round(settled / seconds)} settled a ` +
      `second beside them; ${Math.round((latenciesMs.length / busyMs) * 1_000)} a second of the deciding alone\n` +
      `p50 ${(p50Ms * 1_000).toFixed(2)} us, p99 ${p99Microseconds.toFixed(2)} us (target ${TARGETS.p99Microseconds})\n`,
  );
  process.exitCode =
    perSecond >= TARGETS.perSecond && p99Microseconds <= TARGETS.p99Microseconds ? 0 : 1;
  await api.stop();
} finally {
  await mochaGlobalTeardown();
}
// The client would settle for minutes.
process.exit();
