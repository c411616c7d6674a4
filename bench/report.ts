/** The results of a run, as Markdown for people and as JSON for comparing runs. */
import { execFileSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { arch, cpus, platform, totalmem } from 'node:os';
import { join } from 'node:path';
import type { ChargeSize } from './bytes.ts';
import { loadGenerator } from './load.ts';
import type { Options } from './options.ts';
import { bestOf, median, type Measured, type RowResult } from './rounds.ts';
import { scriptRunner } from './scripts.ts';
import type { Stack } from './stack.ts';
import { isReached, TARGETS, type Results, type Target } from './targets.ts';

const README = join(import.meta.dirname, 'README.md');
const RESULTS = join(import.meta.dirname, 'results');
/** The results of large.ts. They have a separate table, which a run without them does not change. */
const LARGE_ROWS = /^(small|large) /;

export interface Report extends Results {
  readonly size: ChargeSize | undefined;
  readonly context: ReturnType<typeof contextOf>;
}

/** The machine, the time and the versions. */
export function contextOf(stack: Stack, { rounds, seconds, seed }: Options) {
  return {
    date: new Date().toISOString(),
    commit: commit(),
    machine: {
      platform: platform(),
      arch: arch(),
      cpu: cpus()[0]?.model,
      cores: cpus().length,
      memoryGiB: Math.round(totalmem() / 2 ** 30),
    },
    versions: {
      node: process.versions.node,
      postgres: stack.postgresVersion,
      fastify: versionOf('fastify'),
      koa: versionOf('koa'),
    },
    postgresSettings: stack.postgresSettings,
    loadGenerator,
    scriptRunner,
    rounds,
    seconds,
    seed,
  };
}

function versionOf(name: string): string {
  return (createRequire(import.meta.url)(`${name}/package.json`) as { version: string }).version;
}

/** Undefined outside a clone. */
function commit(): string | undefined {
  try {
    const args = ['describe', '--always', '--dirty'];
    return execFileSync('git', args, { cwd: import.meta.dirname, stdio: 'pipe' })
      .toString()
      .trim();
  } catch {
    return undefined;
  }
}

/** The whole report in Markdown. */
export function markdownOf(report: Report): string {
  const { context, rows } = report;
  const { machine, versions } = context;
  const head =
    `${context.date.slice(0, 10)}, ${machine.cores} cores (${machine.cpu}), Node ${versions.node}, ` +
    `PostgreSQL ${versions.postgres}, ${context.loadGenerator}, ${context.scriptRunner}; ` +
    `${context.rounds} rounds of ${context.seconds} s, seed ${context.seed}:`;
  const targets = TARGETS.map((target) => targetLine(target, target.values(report)));
  return [
    head,
    '',
    '| | at a time | a second | spread | p50 ms | p99 ms |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows.map(rowLine),
    '',
    '| target | | goal | median | spread |',
    '| --- | --- | --- | --- | --- |',
    ...targets.filter((line) => line !== undefined),
    ...(report.size ? ['', sizeLine(report.size)] : []),
  ].join('\n');
}

function rowLine(row: RowResult): string {
  const { connections, rounds } = bestOf(row);
  const of = (which: 'p50Ms' | 'p99Ms') => {
    const values = rounds.map((round: Measured) => round[which] ?? Number.NaN);
    return values.some(Number.isNaN) ? '' : median(values).toFixed(2);
  };
  const rates = rounds.map(({ perSecond }) => perSecond);
  return cells(
    row.name,
    connections,
    median(rates).toFixed(0),
    spread(rates, 0),
    of('p50Ms'),
    of('p99Ms'),
  );
}

function targetLine(target: Target, values: readonly number[]): string | undefined {
  if (values.length === 0) return undefined;
  const { name, bound, goal, digits } = target;
  const word = isReached(target, values) ? 'reached' : '**not reached**';
  return cells(
    name,
    word,
    `${bound} ${goal}`,
    median(values).toFixed(digits),
    spread(values, digits),
  );
}

function sizeLine({ charges, parts }: ChargeSize): string {
  const all = Object.entries(parts).map(([name, bytes]) => `${name} ${bytes.toFixed(0)}`);
  return `Bytes a charge, after ${charges} of them: ${all.join(', ')}.`;
}

function spread(values: readonly number[], digits: number): string {
  if (values.length < 2) return '';
  return `${Math.min(...values).toFixed(digits)} to ${Math.max(...values).toFixed(digits)}`;
}

function cells(...values: readonly (string | number)[]): string {
  return `| ${values.join(' | ')} |`;
}

/** Writes to results/ and, between the marks, to the README. Returns the file's name. */
export async function publish(report: Report): Promise<string> {
  const { context, ...measured } = report;
  const large = report.rows.filter(({ key }) => LARGE_ROWS.test(key));
  const targets = TARGETS.map((target) => ({ target, values: target.values(report) }))
    .filter(({ values }) => values.length > 0)
    .map(({ target, values }) => ({
      name: target.name,
      goal: `${target.bound} ${target.goal}`,
      values,
      median: median(values),
      isReached: isReached(target, values),
    }));
  await mkdir(RESULTS, { recursive: true });
  const name = `${context.date.slice(0, 10)}${large.length > 0 ? '-large' : ''}.json`;
  const text = JSON.stringify({ ...context, targets, ...measured }, null, 2);
  await writeFile(join(RESULTS, name), `${text}\n`);

  const others = report.rows.filter(({ key }) => !LARGE_ROWS.test(key));
  let readme = await readFile(README, 'utf8');
  readme = withTable(readme, 'latest', markdownOf({ ...report, rows: others }));
  if (large.length > 0) {
    readme = withTable(readme, 'large', markdownOf({ context, rows: large, size: undefined }));
  }
  await writeFile(README, readme);
  return name;
}

function withTable(readme: string, mark: string, table: string): string {
  const [open, close] = [`<!-- ${mark} -->`, `<!-- /${mark} -->`];
  const [from, to] = [readme.indexOf(open), readme.indexOf(close)];
  if (from < 0 || to < from) throw new Error(`README.md has no ${open} ... ${close}`);
  return `${readme.slice(0, from)}${open}\n\n${table}\n\n${readme.slice(to)}`;
}
