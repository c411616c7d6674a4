/**
 * Every flood of floods.ts from 256 connections, for 10 seconds each. Before it, another developer charges alone for as
 * long; after it, while the same flood is sent to another process that only sends each body back (bare-server.ts), which says
 * what the machine itself costs. One line for each flood: the p99 of that developer's charges in the three, and the verdict. It
 * fails when that developer is refused. The ratio fails nothing: it depends on the machine's cores.
 * `npm run test:faults:floods -- [--seconds 10] [--connections 256] [--only "batches of 1,000"]`
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startChild } from '../../src/embedded/child.ts';
import { LEAN_NODE } from '../../src/embedded/parts.ts';
import { ChargeReply } from '../../src/schemas/charges.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApiProcesses } from '../support/api.ts';
import { bodyOf, charge } from '../support/http.ts';
import { choosePort } from '../support/ports.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { WITH_RATE_LIMITS } from '../support/stack.ts';
import { floodsOf, measure } from './floods.ts';

/** The bound on a charge's p99 in a flood, compared to without it. */
const RATIO_MAX = 2;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    connections: { type: 'string', default: '256' },
    only: { type: 'string' },
  },
});
const options = {
  connections: Number(values.connections),
  forMs: Number(values.seconds) * 1_000,
};

await mochaGlobalSetup();
try {
  const api = await startTestApiProcesses({ env: WITH_RATE_LIMITS, nodeFlags: LEAN_NODE });
  const [attacker, poor, ...others] = await Promise.all(
    Array.from({ length: 30 }, (_, index) => api.createAccount(index === 1 ? 1 : 10_000)),
  );
  // The flood fills one of the two lanes, so the victim has to be in the same.
  const victim = others.find((other) => attacker && laneOf(other) === laneOf(attacker));
  if (!attacker || !poor || !victim) throw new Error('no accounts');
  const { id } = bodyOf(await charge(api, attacker, { amount: 1 }), 201, ChargeReply);
  const port = await choosePort();
  const bareUrl = `http://127.0.0.1:${port}`;
  const bare = await startChild({
    name: 'bare server',
    command: [process.execPath, ...LEAN_NODE, join(import.meta.dirname, 'bare-server.ts')],
    env: { PATH: process.env['PATH'], PORT: String(port) },
    logFile: join(process.env['TEST_FOLDER'] ?? '', 'bare-server.log'),
    ready: 'message',
  });
  // Code that is compiled first is slow, and is not measured.
  await measure(api, victim, {}, options);
  for (const flood of floodsOf(attacker, poor, id)) {
    if (values.only !== undefined && values.only !== flood.name) continue;
    const alone = await measure(api, victim, {}, options);
    const flooded = await measure(api, victim, flood, options);
    const { busyShare, answers } = flooded.attack;
    const beside = await measure(api, victim, { ...flood, at: bareUrl }, options);
    const refused = alone.refused + flooded.refused + beside.refused;
    const ratio = flooded.p99Ms / alone.p99Ms;
    const verdict = refused > 0 ? 'REFUSED' : ratio > RATIO_MAX ? 'NOT MET' : 'met';
    process.stdout.write(
      `${flood.name}: p99 ${flooded.p99Ms.toFixed(1)} ms, alone ${alone.p99Ms.toFixed(1)} ms, ` +
        `ratio ${ratio.toFixed(2)} (at most ${RATIO_MAX}), ${verdict}; ` +
        `${beside.p99Ms.toFixed(1)} ms (${(beside.p99Ms / alone.p99Ms).toFixed(2)}) while it floods another process; ` +
        `p50 ${flooded.p50Ms.toFixed(1)}, ${alone.p50Ms.toFixed(1)}, ${beside.p50Ms.toFixed(1)} ms; ` +
        `${refused} of ${alone.charges + flooded.charges + beside.charges} refused; ` +
        `the sender took ${Math.round(busyShare * 100)} % of a core; ` +
        `answers to the flood ${JSON.stringify(answers)}, of the other process ${JSON.stringify(beside.attack.answers)}\n`,
    );
    if (refused > 0) process.exitCode = 1;
  }
  await bare.stop();
  await api.stop();
} finally {
  await mochaGlobalTeardown();
}

/** Of two lanes: as the batcher does it, by the last digits of the consumer. */
function laneOf({ consumerId }: TestAccount): number {
  return Number.parseInt(consumerId.slice(-4), 16) % 2;
}
