/**
 * `npm run test:faults:lines`: each fault of a line or a part, one after the other, under uninterrupted
 * charges and with a payment in hand. For each: what callers saw, and how soon charges and top-ups worked
 * again; the books are proved each time. `-- --seconds 6` shortens the outages, `--only "its disk"` picks
 * some, `--seed N` repeats a run.
 *
 * A full disk needs a small file system, so its trials run as root; false clocks need libfaketime (Debian's package).
 */
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { SEED } from '../support/random.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { lineTrials } from './line-trials.ts';
import { openDamagedSite } from './damaged-site.ts';
import type { TrialResult } from './lined-site.ts';
import { table, writeRunReport } from './reliability-report.ts';

/** The promise of docs/reliability.md. */
const RECOVERY_MS_MAX = 10_000;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    seed: { type: 'string', default: String(SEED) },
    only: { type: 'string', default: '' },
  },
});
const print = (text: string) => process.stdout.write(`${text}\n`);
const startedAt = new Date();
const seed = Number(values.seed);

await mochaGlobalSetup();
try {
  await runTrials();
} finally {
  await mochaGlobalTeardown();
}

async function runTrials(): Promise<void> {
  print(`--seed ${seed} --seconds ${values.seconds}`);
  assert.ok(process.getuid?.() === 0, 'a small disk needs root');
  const damaged = await openDamagedSite({ seed, recoveryMsMax: RECOVERY_MS_MAX });
  if (!damaged.hasClocks) print('Without libfaketime, clocks are not stepped.');
  const results: TrialResult[] = [];
  try {
    const longMs = Number(values.seconds) * 1_000;
    const trials = [...damaged.trials(longMs / 3), ...lineTrials(longMs)];
    for (const trial of trials.filter(({ name }) => name.includes(values.only))) {
      print(trial.name);
      const result = await damaged.site.run(trial);
      assert.ok(result.caughtMs <= RECOVERY_MS_MAX, `${trial.name}: ${result.caughtMs} ms`);
      await damaged.site.proveBooks();
      print(`  ${JSON.stringify(result)}`);
      results.push(result);
    }
  } finally {
    await damaged.close();
  }
  assert.ok(results.length > 0, 'no trial has such a name');
  if (values.only === '') await report(results);
}

async function report(results: readonly TrialResult[]): Promise<void> {
  const charges = results.reduce((sum, { seen }) => sum + (seen['201'] ?? 0), 0);
  const rows = results.map(({ name, seen, chargesMs, topUpMs, caughtMs }) => [
    name,
    Object.entries(seen)
      .map(([what, count]) => `${what}: ${count}`)
      .join(', '),
    ...[chargesMs, topUpMs, caughtMs].map((ms) => `${(ms / 1_000).toFixed(1)} s`),
  ]);
  await writeRunReport({
    title: 'Faults of lines and parts',
    command: `npm run test:faults:lines -- --seconds ${values.seconds}`,
    seed,
    startedAt,
    body: `${results.length} faults under ${charges} charges. After each, \`farebox doctor\` found nothing, against the processor too.
Outages last ${values.seconds} s, the others a third of that. Times count from the end of the fault: until every client had
made charges again; until a new top-up was requested, paid and credited; until one that was paid during the fault was
credited. There is one worker here, and Temporal has the settings of \`npm start\` and \`docker-compose.yml\`; with others it
takes longer to forget a connection ([decision 0043](decisions/0043-forgotten-connections-to-temporal.md)).

${table(['Fault', 'Answers to charges', 'Charges', 'New top-up', 'Top-up in hand'], rows)}`,
  });
}
