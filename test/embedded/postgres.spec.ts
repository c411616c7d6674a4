/** The embedded PostgreSQL on data directories in unusual states. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { randomPasswords } from '../../src/embedded/data-dir.ts';
import { choosePort } from '../support/ports.ts';
import { startPostgres, type Postgres } from '../../src/embedded/postgres.ts';
import { until } from '../support/stack.ts';

describe('startPostgres', () => {
  const passwords = randomPasswords();
  let folder: string;
  let dataDir: string;
  let port: number;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'farebox-postgres-'));
    dataDir = join(folder, 'postgres');
    port = await choosePort();
  });

  after(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  const start = (
    directory = dataDir,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<Postgres> =>
    startPostgres({
      settings,
      dataDir: directory,
      logFile: join(folder, 'postgres.log'),
      env: process.env,
      port,
      passwords,
    });

  const readLog = () => readFile(join(folder, 'postgres.log'), 'utf8');

  it('creates the cluster again when an earlier attempt was killed half-way', async () => {
    await mkdir(`${dataDir}.new`);
    await writeFile(join(`${dataDir}.new`, 'PG_VERSION'), '18\n');
    const postgres = await start();
    assert.deepEqual(await query(postgres.url, 'show fsync'), [{ fsync: 'on' }]);
    assert.deepEqual(await query(postgres.url, 'show timezone'), [{ TimeZone: 'UTC' }]);
    await postgres.stop();
  });

  it('requires a password of everyone, and gives the application its own database only', async () => {
    const postgres = await start();
    for (const url of [postgres.url, postgres.superuserUrl]) {
      for (const wrong of ['', 'wrong', passwords.application.toUpperCase()]) {
        const forged = Object.assign(new URL(url), { password: wrong });
        await assert.rejects(query(forged.href, 'select 1'), /password/);
      }
    }
    for (const statement of [
      `select pg_read_file('/etc/hostname')`,
      `copy (select 1) to program 'cat'`,
      `create role mine superuser`,
      `alter role farebox superuser`,
    ]) {
      await assert.rejects(query(postgres.url, statement), /permission denied|must be superuser/i);
    }
    const commandLine = await readFile(`/proc/${postgres.pid}/cmdline`, 'utf8').catch(() => '');
    assert.ok(!Object.values(passwords).some((password) => commandLine.includes(password)));
    assert.equal(existsSync(`${dataDir}.password`), false);
    await postgres.stop();
  });

  it('explains what to do when the passwords do not match the data', async () => {
    const options = { dataDir, logFile: join(folder, 'other.log'), env: process.env, port };
    const other = startPostgres({ ...options, passwords: randomPasswords() });
    await assert.rejects(other, /does not match secrets\.json.*restore the secrets\.json/);
  });

  it('keeps committed data when its server is killed', async () => {
    const killed = await start();
    await query(killed.url, 'create table kept as select 7 as seven');
    killed.kill('SIGKILL');
    await killed.exited;
    const postgres = await start();
    assert.deepEqual(await query(postgres.url, 'select * from kept'), [{ seven: 7 }]);
    await postgres.stop();
  });

  it('waits for a statement that the killed server still runs', async () => {
    const killed = await start();
    const text = 'select count(*) from (select generate_series(1, 50000000)) as numbers';
    const running = Promise.allSettled([query(killed.url, text)]);
    await until(async () => {
      const begun = `select from pg_stat_activity where query = '${text}'`;
      return (await query(killed.url, begun)).length > 0;
    });
    const { length } = await readLog();
    killed.kill('SIGKILL');
    await killed.exited;
    const postgres = await start();
    assert.deepEqual(await query(postgres.url, 'select * from kept'), [{ seven: 7 }]);
    await postgres.stop();
    const log = (await readLog()).slice(length);
    assert.match(log, /pre-existing shared memory block .* still in use/);
    await running;
  });

  it('stops a server that a killed start left running', async () => {
    const left = await start();
    const postgres = await start();
    assert.equal(await left.exited, 'exit code 0');
    assert.notEqual(postgres.pid, left.pid);
    await postgres.stop();
  });

  it('does not mistake another process for its server, even if the lock file names it', async () => {
    const lockFile = join(dataDir, 'postmaster.pid');
    await writeFile(lockFile, `${process.pid}\n${dataDir}\n0\n${port}\n\n127.0.0.1\n\nready\n`);
    const postgres = await start();
    assert.equal((await readFile(lockFile, 'utf8')).split('\n')[0], String(postgres.pid));
    await postgres.stop();
  });

  it('archives the WAL in time after a start, also before the first checkpoint', async () => {
    const killed = await start();
    killed.kill('SIGKILL');
    await killed.exited;
    const postgres = await start(dataDir, {
      archive_mode: 'on',
      archive_command: 'true',
      archive_timeout: '1',
      checkpoint_timeout: '1d',
    });
    await query(postgres.url, 'create table written as select 1 as one');
    const [{ file }] = (await query(
      postgres.superuserUrl,
      'select pg_walfile_name(pg_current_wal_lsn()) as file',
    )) as [{ file: string }];
    const archived = `select from pg_stat_archiver where last_archived_wal >= '${file}'`;
    await until(async () => (await query(postgres.url, archived)).length > 0);
    await postgres.stop();
  });

  it('refuses data of another major version, and explains what to do', async () => {
    const older = join(folder, 'older');
    await mkdir(older);
    await writeFile(join(older, 'PG_VERSION'), '16\n');
    await assert.rejects(
      start(older),
      /data of PostgreSQL 16, and this is PostgreSQL 18.*--data-dir/,
    );
  });

  it('shows the end of the log when it does not start', async () => {
    const postgres = await start();
    await assert.rejects(start(join(folder, 'second')), /did not start.*Address already in use/s);
    await postgres.stop();
  });
});

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}
