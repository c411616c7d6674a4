/**
 * `npm run test:books -- --waves 5000`: a run of any length, on separate servers. Prints the seed, which repeats what
 * is asked for (`SEED=` or --seed), and how often each operation had each outcome. With `--jumps`, the clock of
 * PostgreSQL jumps.
 */
import { parseArgs } from 'node:util';
import { SEED } from '../../support/random.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../../support/setup.ts';
import { runProgram } from './program.ts';

const WAVES_PER_LINE = 250;

const { values } = parseArgs({
  options: {
    waves: { type: 'string', default: '5000' },
    seed: { type: 'string', default: String(SEED) },
    jumps: { type: 'boolean', default: false },
  },
});
const seed = Number(values.seed);
const waves = Number(values.waves);
const { jumps } = values;
const startedAt = performance.now();
const seconds = () => ((performance.now() - startedAt) / 1_000).toFixed(1);
const print = (text: string) => process.stdout.write(`${text}\n`);

print(`SEED=${seed} --waves ${waves}${jumps ? ' --jumps' : ''}`);
await mochaGlobalSetup();
try {
  const counts = await runProgram({
    seed,
    waves,
    jumps,
    onProgress: (wave) => {
      if (wave % WAVES_PER_LINE === 0) print(`${seconds()} s: ${wave} waves`);
    },
  });
  print(`The books are correct after ${seconds()} s:`);
  for (const [outcome, times] of [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    print(`  ${outcome}: ${times}`);
} catch (error) {
  process.exitCode = 1;
  process.stderr.write(`SEED=${seed}: failed after ${seconds()} s\n`);
  throw error;
} finally {
  await mochaGlobalTeardown();
}
