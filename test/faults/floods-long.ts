/**
 * Every flood of floods.ts from 256 connections, for 10 seconds each, next to 10 seconds without it. It
 * prints a table and fails when another developer is refused.
 * `bin/farebox exec node test/faults/floods-long.ts [--seconds 10] [--connections 256]`
 */
import { parseArgs } from 'node:util';
import { ChargeReply } from '../../src/schemas/charges.ts';
import { startTestApi } from '../support/api.ts';
import { bodyOf, charge } from '../support/http.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { WITH_RATE_LIMITS } from '../support/stack.ts';
import { floodsOf, measure, type Measured } from './floods.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    connections: { type: 'string', default: '256' },
  },
});
const options = {
  connections: Number(values.connections),
  forMs: Number(values.seconds) * 1_000,
};

await mochaGlobalSetup();
try {
  const api = await startTestApi({ env: WITH_RATE_LIMITS });
  const [attacker, victim, poor] = await Promise.all(
    [10_000, 1_000, 1].map((dollars) => api.createAccount(dollars)),
  );
  if (!attacker || !victim || !poor) throw new Error('no accounts');
  const { id } = bodyOf(await charge(api, attacker, { amount: 1 }), 201, ChargeReply);
  // Code that is compiled first is slow, and is not measured.
  await measure(api, victim, undefined, options);
  const lines: Measured[] = [];
  for (const flood of floodsOf(attacker, poor, id)) {
    lines.push(await measure(api, victim, undefined, options));
    lines.push(await measure(api, victim, flood, options));
  }
  for (const { flood, charges, refused, p50Ms, p99Ms, answers } of lines) {
    const figures = [charges, refused, p50Ms.toFixed(1), p99Ms.toFixed(1), JSON.stringify(answers)];
    process.stdout.write(`${flood.padEnd(28)} ${figures.join('  ')}\n`);
  }
  if (lines.some(({ refused }) => refused > 0)) process.exitCode = 1;
  await api.stop();
} finally {
  await mochaGlobalTeardown();
}
