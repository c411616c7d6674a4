/** Doctor and a PostgreSQL that cannot archive its WAL. */
import assert from 'node:assert/strict';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { createDatabase, type Database } from '../../../src/store/database.ts';
import { listArchiveFailures } from '../../../src/store/doctor/archive-check.ts';
import { newDataFolder } from '../../support/data-folder.ts';
import { startOwnPostgres } from '../../support/own-servers.ts';
import { documentedArchiveCommand } from '../../support/restorable-postgres.ts';
import { until } from '../../support/stack.ts';

describe('archiving of WAL', () => {
  let archive: string;
  let postgres: Awaited<ReturnType<typeof startOwnPostgres>>;
  let database: Database;

  before(async () => {
    const folder = await newDataFolder('farebox-archive-');
    archive = join(folder, 'wal');
    const settings = { archive_mode: 'on', archive_command: documentedArchiveCommand(archive) };
    postgres = await startOwnPostgres(settings, folder);
    database = await createDatabase(postgres.url, { maxPoolSize: 1, onError: () => {} });
  });
  after(async () => {
    await database?.end();
    await postgres?.remove();
  });

  it('is reported while its command fails, and no longer once the files are archived', async () => {
    assert.deepEqual(await listArchiveFailures(database, 0), []);
    const superuser = new Client({ connectionString: postgres.superuserUrl });
    await superuser.connect();
    await superuser.query('select pg_switch_wal()');
    await superuser.end();
    const [failure] = await until(async () => {
      const failures = await listArchiveFailures(database, 0);
      return failures.length > 0 && failures;
    });
    assert.match(failure?.subject ?? '', /^WAL file [0-9A-F]{24}$/);
    assert.match(failure?.detail ?? '', /^its archive_command fails, last at .+ at no time$/);
    assert.deepEqual(await listArchiveFailures(database, 3_600_000), [], 'it is not late yet');
    await mkdir(archive);
    // PostgreSQL may run as another user.
    await chmod(archive, 0o777);
    await until(async () => (await listArchiveFailures(database, 0)).length === 0);
  });
});
