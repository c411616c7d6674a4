/**
 * `npm run fetch:postgres-programs`: puts pg_dump and pg_restore 18 and PgBouncer into
 * node_modules/.cache/postgres-programs, where the tests of dumps and of poolers look for them. For a Debian
 * that has older ones: they come from a newer Debian, by apt and the mirror of this machine, with the
 * libraries that they were built with. Nothing is installed.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

const FOLDER = join(import.meta.dirname, '../node_modules/.cache/postgres-programs');
/** The first release of Debian with PostgreSQL 18. */
const SUITE = 'forky';
const PACKAGES = ['postgresql-client-18', 'pgbouncer'];
const PROGRAMS = [
  'usr/lib/postgresql/18/bin/pg_dump',
  'usr/lib/postgresql/18/bin/pg_restore',
  'usr/sbin/pgbouncer',
];
const OUTPUT_BYTES_MAX = 2 ** 24;
const run = promisify(execFile);
const folder = await mkdtemp(join(tmpdir(), 'farebox-apt-'));
try {
  const apt = await privateApt();
  await apt('apt-get', ['update']);
  const packages = await needed(apt);
  await apt('apt-get', ['download', ...packages]);
  await rm(FOLDER, { recursive: true, force: true });
  await mkdir(FOLDER, { recursive: true });
  const archives = (await readdir(folder)).filter((name) => name.endsWith('.deb'));
  for (const archive of archives) {
    await run('dpkg-deb', ['--extract', join(folder, archive), join(FOLDER, 'root')]);
  }
  for (const program of PROGRAMS) await wrap(program);
} finally {
  await rm(folder, { recursive: true });
}

type Apt = (program: string, args: readonly string[]) => Promise<string>;

/** apt with lists, downloads and a status of its own, and the mirror and the keys of this machine. */
async function privateApt(): Promise<Apt> {
  const { stdout } = await run('apt-get', ['indextargets', '--format', '$(LABEL) $(SITE)']);
  const site = /^Debian (\S+)$/m.exec(stdout)?.[1] ?? assert.fail('apt has no mirror of Debian');
  await writeFile(join(folder, 'sources.list'), `deb ${site} ${SUITE} main\n`);
  await mkdir(join(folder, 'lists/partial'), { recursive: true });
  await mkdir(join(folder, 'cache/archives/partial'), { recursive: true });
  await writeFile(join(folder, 'status'), '');
  await writeFile(
    join(folder, 'apt.conf'),
    `Dir::State "${folder}"; Dir::State::status "${folder}/status"; Dir::State::lists "${folder}/lists";
Dir::Cache "${folder}/cache"; Dir::Etc::sourcelist "${folder}/sources.list"; Dir::Etc::sourceparts "-";
APT::Sandbox::User "root"; Acquire::Languages "none";\n`,
  );
  return async (program, args) => {
    const settings = `APT_CONFIG=${join(folder, 'apt.conf')}`;
    const options = { cwd: folder, maxBuffer: OUTPUT_BYTES_MAX };
    const { stdout: output } = await run('env', [settings, program, ...args], options);
    return output;
  };
}

/** The package, and the libraries that it and they depend on. */
async function needed(apt: Apt): Promise<string[]> {
  const without = ['recommends', 'suggests', 'conflicts', 'breaks', 'replaces', 'enhances'];
  const output = await apt('apt-cache', [
    'depends',
    '--recurse',
    ...without.map((each) => `--no-${each}`),
    ...PACKAGES,
  ]);
  const names = output.split('\n');
  return [...PACKAGES, ...names.filter((name) => /^lib(?!perl)/.test(name))];
}

/** Programs of a newer release of Debian need its loader and its libraries. */
async function wrap(program: string): Promise<void> {
  const file = join(FOLDER, basename(program));
  await writeFile(
    file,
    `#!/bin/sh
root='${FOLDER}/root'
for libraries in "$root"/usr/lib/*-linux-gnu*; do break; done
loader=$(echo "$libraries"/ld-linux*.so.*)
exec "$loader" --library-path "$libraries" "$root/${program}" "$@"\n`,
  );
  await chmod(file, 0o755);
  const { stdout } = await run(file, ['--version']);
  process.stdout.write(stdout);
}
