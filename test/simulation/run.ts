/**
 * `npm run test:simulation -- --operations 200000`: a run of any length, on separate servers. Prints the
 * seed, which repeats the same steps (`SEED=` or --seed), and how often each thing happened.
 */
import { parseArgs } from 'node:util';
import { SEED } from '../support/random.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { simulate } from './simulation.ts';

const OPERATIONS_PER_KILL = 2_000;

const { values } = parseArgs({
  options: {
    operations: { type: 'string', default: '20000' },
    kills: { type: 'string' },
    seed: { type: 'string', default: String(SEED) },
  },
});
const operations = Number(values.operations);
const seed = Number(values.seed);
const kills = Number(values.kills ?? Math.ceil(operations / OPERATIONS_PER_KILL));
const startedAt = performance.now();
const seconds = () => ((performance.now() - startedAt) / 1_000).toFixed(1);
const print = (text: string) => process.stdout.write(`${text}\n`);

print(`SEED=${seed} --operations ${operations} --kills ${kills}`);
await mochaGlobalSetup();
try {
  const every = Math.max(1, Math.floor(operations / 20));
  const counts = await simulate({
    seed,
    operations,
    kills,
    onProgress: (done, soFar) => {
      if (done % every === 0) print(`${seconds()} s: ${done} steps, ${soFar.get('made')} charges`);
    },
  });
  print(`The service and the model agree, and the books are whole, after ${seconds()} s:`);
  for (const [what, times] of counts) print(`  ${what}: ${times}`);
} catch (error) {
  process.exitCode = 1;
  process.stderr.write(`SEED=${seed}: failed after ${seconds()} s\n`);
  throw error;
} finally {
  await mochaGlobalTeardown();
}
