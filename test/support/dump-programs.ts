/** pg_dump and pg_restore, which do not come with the PostgreSQL of our packages. */
import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const FETCHED = join(import.meta.dirname, '../../node_modules/.cache/postgres-programs');
/** Older programs refuse a server of this version. */
const MAJOR_VERSION_MIN = 18;

const run = promisify(execFile);

export interface DumpPrograms {
  dump(databaseUrl: string, file: string, ...options: string[]): Promise<void>;
  restore(file: string, databaseUrl: string, ...options: string[]): Promise<void>;
}

/**
 * From POSTGRES_PROGRAMS, PATH, or where `npm run fetch:postgres-programs` puts them; undefined where there
 * are none.
 */
export function findDumpPrograms(): DumpPrograms | undefined {
  const given = process.env['POSTGRES_PROGRAMS'];
  const folder = (given === undefined ? ['', FETCHED] : [given]).find(isNewEnough);
  if (folder === undefined) return undefined;
  return {
    async dump(databaseUrl, file, ...options) {
      const args = [databaseUrl, '--format=custom', `--file=${file}`, ...options];
      await run(join(folder, 'pg_dump'), args);
    },
    async restore(file, databaseUrl, ...options) {
      const args = ['--exit-on-error', '--single-transaction', `--dbname=${databaseUrl}`];
      await run(join(folder, 'pg_restore'), [...args, ...options, file]);
    },
  };
}

function isNewEnough(folder: string): boolean {
  return ['pg_dump', 'pg_restore'].every((program) => {
    const { stdout } = spawnSync(join(folder, program), ['--version'], { encoding: 'utf8' });
    return Number(/\d+/.exec(stdout ?? '')?.[0] ?? 0) >= MAJOR_VERSION_MIN;
  });
}
