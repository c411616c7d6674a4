/**
 * `npm run test:faults:histories`: records histories of concurrent clients under faults and kills, and proves each
 * linearizable for each consumer; then plants every bug, and shows which witness finds it.
 * `-- --runs 50 --seed N` for other numbers; `--only "refund|hold"` plants only some bugs, by a regular expression.
 */
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { SEED } from '../../support/random.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../../support/setup.ts';
import { table, writeRunReport } from '../reliability-report.ts';
import { recordHistories, type HistoryRun, type Witness } from './history-run.ts';
import { PLANTED_BUGS, type PlantedBug } from './planted-bugs.ts';

const WITNESSES: readonly Witness[] = ['answers', 'checker', 'ledger', 'doctor'];
/** A bug that needs a race shows in some runs only. */
const TRIES_MAX = 5;
const SIZE = { consumers: 3, clientsEach: 4, stepsEach: 60, kills: true };
const SMALL = { consumers: 2, clientsEach: 6, stepsEach: 25, kills: false };

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '30' },
    tries: { type: 'string', default: String(TRIES_MAX) },
    seed: { type: 'string', default: String(SEED) },
    only: { type: 'string', default: '' },
  },
});
const print = (text: string) => process.stdout.write(`${text}\n`);
const seed = Number(values.seed);
const startedAt = new Date();

interface Found {
  readonly bug: PlantedBug;
  readonly tries: number;
  readonly witnesses: readonly Witness[];
}

await mochaGlobalSetup();
try {
  print(`--seed ${seed} --runs ${values.runs}`);
  const runs = await recordRuns(Number(values.runs));
  const found: Found[] = [];
  for (const bug of PLANTED_BUGS.filter(({ name }) => new RegExp(values.only).test(name))) {
    found.push(await plant(bug));
  }
  const missed = found.filter(({ witnesses }) => witnesses.length === 0);
  assert.deepEqual(
    missed.map(({ bug }) => bug.name),
    [],
    'nobody found these',
  );
  if (values.only === '') {
    const byBooks = found.filter(({ witnesses }) =>
      witnesses.some((witness) => witness === 'checker' || witness === 'doctor'),
    );
    assert.ok(byBooks.length >= 25, 'the checker or doctor finds at least 25 bugs');
    await report(runs, found);
  }
} finally {
  await mochaGlobalTeardown();
}

async function recordRuns(count: number): Promise<HistoryRun[]> {
  const runs: HistoryRun[] = [];
  for (let n = 0; n < count; n += 1) {
    const run = await recordHistories({ ...SIZE, seed: seed + n });
    print(`run ${n + 1}: ${run.operations} operations, ${run.faults} faults`);
    assert.deepEqual(run.found, {}, `--seed ${seed + n} --runs 1`);
    assert.ok(!('500 internal_error' in run.answers), JSON.stringify(run.answers));
    runs.push(run);
  }
  return runs;
}

async function plant(bug: PlantedBug): Promise<Found> {
  for (let tries = 1; tries <= Number(values.tries); tries += 1) {
    const { found } = await recordHistories({ ...SMALL, seed: seed + tries, bug });
    const witnesses = WITNESSES.filter((witness) => found[witness] !== undefined);
    const shown = witnesses.map((witness) => `\n  ${witness}: ${found[witness]}`);
    print(`${bug.name}:${shown.join('') || ' not found'}`);
    if (witnesses.length > 0) return { bug, tries, witnesses };
  }
  return { bug, tries: Number(values.tries), witnesses: [] };
}

async function report(runs: readonly HistoryRun[], found: readonly Found[]): Promise<void> {
  const sum = (pick: (run: HistoryRun) => number) =>
    runs.reduce((total, run) => total + pick(run), 0);
  const kinds = total(runs.map(({ byKind }) => byKind));
  const answers = total(runs.map((run) => run.answers));
  const rows = found.map(({ bug, tries, witnesses }) => [
    bug.name,
    `\`${bug.file}\``,
    ...WITNESSES.map((witness) => (witnesses.includes(witness) ? 'yes' : '')),
    tries,
  ]);
  await writeRunReport({
    title: 'Histories of concurrent clients',
    command: `npm run test:faults:histories -- --runs ${values.runs}`,
    seed,
    startedAt,
    body: `${runs.length} histories, all linearizable for each of their ${SIZE.consumers} consumers:
${sum(({ operations }) => operations)} operations by ${SIZE.consumers * SIZE.clientsEach} clients through two API processes, under
${sum(({ faults }) => faults)} faults (resets, silence, lost answers, cuts, delays, ended sessions, killed and stopped processes).
Every charge that was answered is stored, no other is, and \`farebox doctor\` found nothing.

${table(['Operation', 'Count'], Object.entries(kinds))}

${table(['Answer', 'Count'], Object.entries(answers))}

${found.length} bugs were planted one by one, each in a database of its own, and all were found. Witnesses: the answers by
themselves (two outcomes of one key, or an outcome after "nothing happened"), the checker of histories, the comparison of
answered with stored charges, and \`farebox doctor\` (without its comparison of the schema).

${table(['Planted bug', 'File', ...WITNESSES, 'Runs until found'], rows)}`,
  });
}

function total(counts: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const [name, count] of counts.flatMap((each) => Object.entries(each))) {
    sums[name] = (sums[name] ?? 0) + count;
  }
  return sums;
}
