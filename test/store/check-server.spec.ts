/** What a PostgreSQL that somebody else runs may have as its defaults, and who notices. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { Type } from 'typebox';
import { checkServer, judgeServer, UnsuitableServerError } from '../../src/store/check-server.ts';
import { createDatabase, row, sql, type Database } from '../../src/store/database.ts';
import { PoolerError } from '../../src/store/session.ts';
import { pgBouncerVersion, startPgBouncer } from '../support/pgbouncer.ts';
import { asSuperuser, createTestDatabase, type TestDatabase } from '../support/stack.ts';

const settingRow = row(Type.Object({ value: Type.String() }));

/** Checks the server behind PgBouncer, then connects to it as commands do. */
async function refusedBehind(databaseUrl: string, ignored: string): Promise<Database> {
  const pooler = await startPgBouncer(databaseUrl, { ignored });
  try {
    await assert.rejects(checkServer(pooler.url), PoolerError);
    return await createDatabase(pooler.url, { maxPoolSize: 1, onError: () => {} });
  } finally {
    await pooler.stop();
  }
}

describe('the PostgreSQL of a start', () => {
  let testDatabase: TestDatabase;
  let superuser: Client;
  let name: string;

  beforeEach(async () => {
    testDatabase = await createTestDatabase();
    name = new URL(testDatabase.url).pathname.slice(1);
    superuser = new Client({ connectionString: asSuperuser(testDatabase.url) });
    await superuser.connect();
  });

  afterEach(async () => {
    await superuser.end();
    await testDatabase.drop();
  });

  const set = (setting: string, value: string) =>
    superuser.query(`alter database ${name} set ${setting} = ${value}`);

  const refuses = async (sentence: RegExp) =>
    assert.rejects(checkServer(testDatabase.url), (error) => {
      assert.ok(error instanceof UnsuitableServerError, String(error));
      assert.match(error.message, sentence);
      return true;
    });

  it('may be one like ours; that the tests turned fsync off is said', async () => {
    assert.deepEqual(await checkServer(testDatabase.url), [
      'fsync is off: a crash of this machine can destroy the database',
    ]);
  });

  it('must not be read-only', async () => {
    await set('default_transaction_read_only', 'on');
    await refuses(/^Postgres is read-only/);
  });

  it('must not confirm charges that a crash would lose', async () => {
    await set('synchronous_commit', 'off');
    await refuses(/^synchronous_commit is off/);
  });

  it('must fire triggers', async () => {
    await set('session_replication_role', 'replica');
    await refuses(/^session_replication_role is replica/);
  });

  it('must be version 18 or newer', () => {
    const session = {
      isOurs: true,
      unusual: [],
      firesTriggers: true,
      versionNumber: 170_006,
      version: '17.6',
      isReadOnly: false,
      isDurable: true,
      isSyncing: true,
      isOrderChanged: false,
    };
    assert.throws(() => judgeServer(session), /PostgreSQL 17\.6, and Farebox needs PostgreSQL 18/);
    assert.deepEqual(judgeServer({ ...session, versionNumber: 180_000 }), []);
  });

  it('is warned about when the operating system sorts text in another order by now', async () => {
    const other = `${name}_icu`;
    await superuser.query(
      `create database ${other} template template0 locale_provider icu icu_locale 'en' collation_version '1.0'`,
    );
    try {
      const url = new URL(asSuperuser(testDatabase.url));
      url.pathname = `/${other}`;
      const warnings = await checkServer(url.href);
      assert.match(warnings.join('\n'), /sorts text differently .* reindex database/);
    } finally {
      await superuser.query(`drop database ${other}`);
    }
  });

  it('may have any style of dates and any time zone: times are read right', async () => {
    await set('datestyle', `'German'`);
    await set('timezone', `'Asia/Kolkata'`);
    await set('default_transaction_isolation', `'serializable'`);
    const database = await createDatabase(testDatabase.url, { maxPoolSize: 1, onError: () => {} });
    try {
      const read = (query: ReturnType<typeof sql.fragment>) =>
        database.oneFirst(sql.type(settingRow)`select ${query} as value`);
      assert.equal(
        await read(sql.fragment`'2026-12-05 01:02:03Z'::timestamptz`),
        '2026-12-05T01:02:03.000Z',
      );
      assert.equal(
        await read(sql.fragment`current_setting('transaction_isolation')`),
        'read committed',
      );
    } finally {
      await database.end();
    }
  });

  it('gets the options of DATABASE_URL, which win over ours', async () => {
    const url = new URL(testDatabase.url);
    url.searchParams.set('options', '-c lock_timeout=1234 -c work_mem=7MB');
    const database = await createDatabase(url.href, { maxPoolSize: 1, onError: () => {} });
    try {
      const setting = (wanted: string) =>
        database.oneFirst(sql.type(settingRow)`select current_setting(${wanted}) as value`);
      assert.equal(await setting('lock_timeout'), '1234ms');
      assert.equal(await setting('work_mem'), '7MB');
      assert.equal(await setting('tcp_keepalives_idle'), '10');
    } finally {
      await database.end();
    }
  });

  describe('behind PgBouncer in transaction mode', () => {
    before(function () {
      if (pgBouncerVersion() !== undefined) return;
      process.stdout.write('    PgBouncer is not on PATH: not tested with it\n');
      this.skip();
    });

    it('is refused in one sentence when it refuses our settings, by commands too', async () => {
      await assert.rejects(refusedBehind(testDatabase.url, ''), PoolerError);
    });

    it('is refused when it drops our settings', async () => {
      const database = await refusedBehind(
        testDatabase.url,
        'options,statement_timeout,idle_in_transaction_session_timeout',
      );
      await database.end();
    });

    it('is taken by a DATABASE_URL that says so, with warnings as without it', async () => {
      const pooler = await startPgBouncer(testDatabase.url);
      try {
        assert.deepEqual(await checkServer(pooler.pooledUrl), await checkServer(testDatabase.url));
      } finally {
        await pooler.stop();
      }
    });

    it('names DATABASE_URL when it refuses the password, user or database', async () => {
      const pooler = await startPgBouncer(testDatabase.url, { isStrict: true });
      try {
        await checkServer(pooler.pooledUrl);
        for (const [part, value] of [
          ['password', 'wrong'],
          ['username', 'absent'],
          ['pathname', '/absent'],
        ] as const) {
          const url = new URL(pooler.pooledUrl);
          url[part] = value;
          const open = () => createDatabase(url.href, { maxPoolSize: 1, onError: () => {} });
          for (const start of [() => checkServer(url.href), open]) {
            await assert.rejects(start, /^Error: PostgreSQL refused what is in DATABASE_URL: /);
          }
        }
      } finally {
        await pooler.stop();
      }
    });

    it('must have sessions whose defaults are those that ours would set', async () => {
      await set('datestyle', `'German'`);
      await set('array_nulls', 'off');
      const pooler = await startPgBouncer(testDatabase.url);
      try {
        await assert.rejects(
          checkServer(pooler.pooledUrl),
          /^UnsuitableServerError: .*set array_nulls to on, datestyle to ISO for it/,
        );
      } finally {
        await pooler.stop();
      }
    });
  });
});
