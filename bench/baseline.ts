/**
 * What Postgres alone does with one debit a transaction (debit.sql): pgbench with prepared statements
 * where there is one, else the same loop by `pg`.
 */
import { execFile, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import type { BenchStack } from './stack.ts';

const run = promisify(execFile);
const SCRIPT = join(import.meta.dirname, 'debit.sql');
const CONSUMERS = 10_000;

/** Debian keeps it off the PATH. */
const PGBENCH = ['pgbench', ...['18', '17', '16', '15'].map(debianPath)].find(
  (path) => spawnSync(path, ['--version'], { stdio: 'ignore' }).error === undefined,
);

function debianPath(major: string): string {
  return `/usr/lib/postgresql/${major}/bin/pgbench`;
}

export const baselineGenerator = PGBENCH ? 'pgbench' : 'pg';

/** Debits per second. */
export async function debitDirectly(
  stack: BenchStack,
  connections: number,
  seconds: number,
): Promise<number> {
  return PGBENCH
    ? withPgbench(PGBENCH, stack, connections, seconds)
    : withPg(stack, connections, seconds);
}

async function withPgbench(
  pgbench: string,
  stack: BenchStack,
  connections: number,
  seconds: number,
): Promise<number> {
  const { stdout } = await run(pgbench, [
    '--no-vacuum',
    '--protocol=prepared',
    '--jobs=1',
    `--client=${connections}`,
    `--time=${seconds}`,
    `--file=${SCRIPT}`,
    `--define=developer=${stack.developerId}`,
    stack.databaseUrl,
  ]);
  const perSecond = /^tps = ([\d.]+)/m.exec(stdout)?.[1];
  if (perSecond === undefined) throw new Error(`pgbench printed no tps:\n${stdout}`);
  return Number(perSecond);
}

async function withPg(stack: BenchStack, connections: number, seconds: number): Promise<number> {
  const script = await readFile(SCRIPT, 'utf8');
  const text = script
    .replace(/^(--|\\).*$/gm, '')
    .replace(':n::bigint', '$1::bigint')
    .replace(':developer', `'${stack.developerId}'`);
  const until = performance.now() + seconds * 1e3;
  const loop = async (): Promise<number> => {
    const client = new Client({ connectionString: stack.databaseUrl });
    await client.connect();
    let debits = 0;
    for (; performance.now() < until; debits += 1) {
      await client.query({
        name: 'debit',
        text,
        values: [1 + Math.floor(Math.random() * CONSUMERS)],
      });
    }
    await client.end();
    return debits;
  };
  const counts = await Promise.all(Array.from({ length: connections }, loop));
  return counts.reduce((sum, count) => sum + count, 0) / seconds;
}
