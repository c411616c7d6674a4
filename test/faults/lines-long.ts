/**
 * `npm run test:faults:lines`: each fault of a line or a part, one after the other, under uninterrupted charges and with
 * a payment in hand. For each: what callers saw, and how soon charges and top-ups worked again; the books are proved
 * each time. `-- --seconds 6` shortens the outages, `--only "its disk"` picks some, `--seed N` repeats a run.
 *
 * A full disk needs a small file system, so its trials run as root; false clocks need libfaketime (Debian's package).
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { startOwnPostgres } from '../support/own-servers.ts';
import { SEED } from '../support/random.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { lineTrials } from './line-trials.ts';
import { openLinedSite, type TrialResult } from './lined-site.ts';
import { findFaketime, partTrials, setClock, STALL_MS } from './part-trials.ts';
import { table, writeRunReport } from './reliability-report.ts';

const DISK = '500m';
/** So few that all can be taken. */
const CONNECTIONS = '60';
const STALLABLE = join(import.meta.dirname, '../support/stallable-loop.ts');

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    seed: { type: 'string', default: String(SEED) },
    only: { type: 'string', default: '' },
  },
});
const print = (text: string) => process.stdout.write(`${text}\n`);
const run = promisify(execFile);
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
  const disk = await mkdtemp(join(tmpdir(), 'farebox-disk-'));
  await run('mount', ['-t', 'tmpfs', '-o', `size=${DISK},mode=755`, 'tmpfs', disk]);
  try {
    const results = await onDisk(disk);
    if (values.only === '') await report(results);
  } finally {
    await run('umount', [disk]);
  }
}

async function onDisk(disk: string): Promise<TrialResult[]> {
  const faketime = await findFaketime();
  const clockFile = faketime && join(disk, 'clock');
  if (clockFile) await setClock(clockFile, '+0');
  else print('Without libfaketime, clocks are not stepped.');
  const folder = join(disk, 'server');
  await mkdir(folder, { mode: 0o755 });
  const settings = { max_connections: CONNECTIONS, max_wal_size: '64MB', shared_buffers: '32MB' };
  const postgres = await startOwnPostgres(settings, folder);
  const site = await openLinedSite({
    seed,
    databaseUrl: postgres.url,
    env: {
      NODE_OPTIONS: `--import=${STALLABLE}`,
      STALL_MS: String(STALL_MS),
      ...(clockFile && {
        LD_PRELOAD: faketime,
        FAKETIME_TIMESTAMP_FILE: clockFile,
        FAKETIME_NO_CACHE: '1',
        FAKETIME_DONT_FAKE_MONOTONIC: '1',
      }),
    },
  });
  const results: TrialResult[] = [];
  try {
    const longMs = Number(values.seconds) * 1_000;
    const damageable = { ...postgres, folder: disk };
    const trials = [...partTrials(damageable, clockFile, longMs / 3), ...lineTrials(longMs)];
    for (const trial of trials.filter(({ name }) => name.includes(values.only))) {
      print(trial.name);
      const result = await site.run(trial);
      await site.proveBooks();
      print(`  ${JSON.stringify(result)}`);
      results.push(result);
    }
  } finally {
    await site.close();
    await postgres.remove();
  }
  assert.ok(results.length > 0, 'no trial has such a name');
  return results;
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
credited.

${table(['Fault', 'Answers to charges', 'Charges', 'New top-up', 'Top-up in hand'], rows)}`,
  });
}
