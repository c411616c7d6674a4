/**
 * Every flood of floods.ts from 256 connections, for 10 seconds each, next to 10 seconds without it. It
 * prints one line per flood: the p99 of another developer's charges in it, their p99 without it, and the verdict. It
 * fails when that developer is refused. The ratio fails nothing: it holds on a machine that does nothing else.
 * `bin/farebox exec node test/faults/floods-long.ts [--seconds 10] [--connections 256]`
 */
import { parseArgs } from 'node:util';
import { ChargeReply } from '../../src/schemas/charges.ts';
import { startTestApi } from '../support/api.ts';
import { bodyOf, charge } from '../support/http.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { WITH_RATE_LIMITS } from '../support/stack.ts';
import { floodsOf, measure } from './floods.ts';

/** The bound on a charge's p99 in a flood, compared to without it. */
const RATIO_MAX = 2;

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
  for (const flood of floodsOf(attacker, poor, id)) {
    const alone = await measure(api, victim, undefined, options);
    const flooded = await measure(api, victim, flood, options);
    const refused = alone.refused + flooded.refused;
    const ratio = flooded.p99Ms / alone.p99Ms;
    const verdict = refused > 0 ? 'REFUSED' : ratio > RATIO_MAX ? 'NOT MET' : 'met';
    process.stdout.write(
      `${flood.name}: p99 ${flooded.p99Ms.toFixed(1)} ms, alone ${alone.p99Ms.toFixed(1)} ms, ` +
        `ratio ${ratio.toFixed(2)} (at most ${RATIO_MAX}), ${refused} of ${alone.charges + flooded.charges} ` +
        `refused, ${verdict}; answers to the flood ${JSON.stringify(flooded.answers)}\n`,
    );
    if (refused > 0) process.exitCode = 1;
  }
  await api.stop();
} finally {
  await mochaGlobalTeardown();
}
