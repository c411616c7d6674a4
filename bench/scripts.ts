/**
 * Postgres alone: runs a script (debit.sql, post-charges.sql) by pgbench with prepared statements where it is
 * installed, otherwise the same loop by `pg`.
 */
import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { latenciesOf } from './latencies.ts';
import type { Effort, Measured } from './rounds.ts';

const run = promisify(execFile);

export interface Script {
  readonly databaseUrl: string;
  /** A file of this directory. */
  readonly file: 'debit.sql' | 'post-charges.sql';
  readonly variables: Readonly<Record<string, string | number>>;
}

/** Debian does not put pgbench on PATH. */
const PGBENCH = ['pgbench', ...['18', '17', '16', '15'].map(debianPath)].find(
  (path) => spawnSync(path, ['--version'], { stdio: 'ignore' }).status === 0,
);

function debianPath(major: string): string {
  return `/usr/lib/postgresql/${major}/bin/pgbench`;
}

export const scriptRunner = PGBENCH
  ? `pgbench ${/[\d.]+/.exec(spawnSync(PGBENCH, ['--version'], { encoding: 'utf8' }).stdout)?.[0]}`
  : 'pg';

/** Runs of the script per second. Individual runs are timed only with a single client, because timing costs. */
export function runScript(script: Script, effort: Effort): Promise<Measured> {
  return PGBENCH ? withPgbench(PGBENCH, script, effort) : withPg(script, effort);
}

async function withPgbench(
  pgbench: string,
  { databaseUrl, file, variables }: Script,
  { connections, seconds, seed }: Effort,
): Promise<Measured> {
  const directory = await mkdtemp(join(tmpdir(), 'farebox-pgbench-'));
  try {
    const options = {
      client: connections,
      jobs: 1,
      time: seconds,
      'random-seed': seed,
      protocol: 'prepared',
      file: join(import.meta.dirname, file),
    };
    const { stdout } = await run(
      pgbench,
      [
        '--no-vacuum',
        ...Object.entries(options).map(([name, value]) => `--${name}=${value}`),
        ...Object.entries(variables).map(([name, value]) => `--define=${name}=${value}`),
        ...(connections === 1 ? ['--log'] : []),
        databaseUrl,
      ],
      { cwd: directory },
    );
    return {
      count: figure(stdout, /^number of transactions actually processed: (\d+)/m),
      perSecond: figure(stdout, /^tps = ([\d.]+)/m),
      ...(connections === 1 ? latenciesOf(await readLog(directory)) : {}),
    };
  } finally {
    await rm(directory, { recursive: true });
  }
}

function figure(text: string, pattern: RegExp): number {
  const found = pattern.exec(text)?.[1];
  if (found === undefined) throw new Error(`pgbench printed no ${pattern}:\n${text}`);
  return Number(found);
}

/** The third field of a line is the transaction's duration in microseconds. */
async function readLog(directory: string): Promise<number[]> {
  const [file = ''] = await readdir(directory);
  const lines = (await readFile(join(directory, file), 'utf8')).trim().split('\n');
  return lines.map((line) => Number(line.split(' ')[2]) / 1e3);
}

async function withPg(script: Script, { connections, seconds }: Effort): Promise<Measured> {
  const { text, draw } = await parse(script);
  const latenciesMs: number[] = [];
  const until = performance.now() + seconds * 1e3;
  const loop = async (): Promise<void> => {
    const client = new Client({ connectionString: script.databaseUrl });
    await client.connect();
    for (let now = performance.now(); now < until;) {
      await client.query({ name: 'script', text, values: [draw()] });
      const before = now;
      now = performance.now();
      latenciesMs.push(now - before);
    }
    await client.end();
  };
  await Promise.all(Array.from({ length: connections }, loop));
  return {
    count: latenciesMs.length,
    perSecond: latenciesMs.length / seconds,
    ...latenciesOf(latenciesMs),
  };
}

/** Our scripts draw one number `n` and run one statement. This reads no more of pgbench's language. */
async function parse({ file, variables }: Script): Promise<{ text: string; draw: () => number }> {
  const script = await readFile(join(import.meta.dirname, file), 'utf8');
  const bound = /^\\set n random\(1, :(\w+)\)$/m.exec(script)?.[1] ?? '';
  const text = script
    .replace(/^(--|\\).*$/gm, '')
    .replace(/(?<!:):([a-z]\w*)/g, (_, name: string) =>
      name === 'n' ? '$1' : `'${variables[name]}'`,
    );
  return { text, draw: () => 1 + Math.floor(Math.random() * Number(variables[bound])) };
}
