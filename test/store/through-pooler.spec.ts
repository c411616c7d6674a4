/**
 * Behind PgBouncer in transaction mode, a connection keeps what it asked of its session, and leaves nothing
 * to the others that share it.
 */
import assert from 'node:assert/strict';
import { Client, Pool } from 'pg';
import { StatementTimeoutError } from 'slonik';
import { Type } from 'typebox';
import {
  createDatabase,
  inOneSnapshot,
  row,
  sql,
  type Connection,
  type Database,
} from '../../src/store/database.ts';
import { ensureChargePartitions } from '../../src/store/charges/partitions.ts';
import { migrate } from '../../src/store/migrations.ts';
import { withSessionOptions } from '../../src/store/session.ts';
import { pgBouncerVersion, startPgBouncer, type PgBouncer } from '../support/pgbouncer.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../support/stack.ts';

const valueRow = row(Type.Object({ value: Type.String() }));

function settingIn(connection: Connection, name: string): Promise<string> {
  return connection.oneFirst(sql.type(valueRow)`select current_setting(${name}) as value`);
}

describe('a connection through PgBouncer in transaction mode', () => {
  let testDatabase: TestDatabase;
  let pooler: PgBouncer;
  let database: Database;

  before(async function () {
    if (pgBouncerVersion() === undefined) {
      process.stdout.write('    PgBouncer is not on PATH: not tested with it\n');
      this.skip();
    }
    testDatabase = await createTestDatabase();
    // Fewer than the pool has connections, so that each session is handed on.
    pooler = await startPgBouncer(testDatabase.url, { sessions: 2 });
    database = await createDatabase(pooler.pooledUrl, {
      maxPoolSize: 6,
      statementTimeoutMs: 30_000,
      lockTimeoutMs: 123,
      usesOneCore: true,
      onError: () => {},
    });
  });
  after(async () => {
    await database?.end();
    await pooler?.stop();
    await testDatabase?.drop();
  });

  it('has its limits in each statement, in each transaction, and nowhere else', async () => {
    const other = new Client({ connectionString: pooler.url });
    await other.connect();
    try {
      const ours = async (connection: Connection) => [
        await settingIn(connection, 'lock_timeout'),
        await settingIn(connection, 'statement_timeout'),
        await settingIn(connection, 'idle_in_transaction_session_timeout'),
        await settingIn(connection, 'jit'),
      ];
      const expected = ['123ms', '30s', '15s', 'off'];
      for (let turn = 0; turn < 3; turn += 1) {
        const answers = await Promise.all(Array.from({ length: 6 }, () => ours(database)));
        for (const answer of answers) assert.deepEqual(answer, expected);
        assert.deepEqual(await database.transaction(ours), expected);
        const { rows } = await other.query('show lock_timeout');
        assert.deepEqual(rows, [{ lock_timeout: '0' }]);
      }
    } finally {
      await other.end();
    }
  });

  it('ends what takes too long, and the wait for a lock', async () => {
    const quick = await createDatabase(pooler.pooledUrl, {
      maxPoolSize: 1,
      statementTimeoutMs: 50,
      onError: () => {},
    });
    try {
      await assert.rejects(
        quick.query(sql.unsafe`select pg_sleep(${600}::int)`),
        StatementTimeoutError,
      );
      await assert.rejects(
        quick.transaction((tx) => tx.query(sql.unsafe`select pg_sleep(600)`)),
        StatementTimeoutError,
      );
    } finally {
      await quick.end();
    }
    const holder = new Client({ connectionString: testDatabase.url });
    await holder.connect();
    try {
      await holder.query('select pg_advisory_lock(1)');
      await assert.rejects(
        database.query(sql.unsafe`select pg_advisory_xact_lock(${1}::int)`),
        /lock timeout/,
      );
    } finally {
      await holder.end();
    }
  });

  it('can choose the isolation of a transaction, set more in it, and have nested ones', async () => {
    const isolation = await inOneSnapshot(database, (tx) => settingIn(tx, 'transaction_isolation'));
    assert.equal(isolation, 'repeatable read');
    await database.transaction(async (tx) => {
      await tx.query(sql.unsafe`set local statement_timeout = 0`);
      await assert.rejects(tx.transaction((nested) => nested.query(sql.unsafe`select 1 / 0`)));
      assert.equal(await settingIn(tx, 'statement_timeout'), '0');
      assert.equal(await settingIn(tx, 'lock_timeout'), '123ms');
    });
  });

  it('undoes a statement that fails', async () => {
    const seen = () =>
      database.oneFirst(sql.type(valueRow)`select count(*)::text as value from farebox.relays`);
    await assert.rejects(
      database.query(sql.unsafe`
        with added as (insert into farebox.relays (id) values (uuidv7()) returning 1)
        select ${1}::int / (count(*) - 1) from added
      `),
      /division by zero/,
    );
    assert.equal(await seen(), '0');
  });

  it('prepares nothing by name, so any session will do', async () => {
    const named = (text: string) =>
      database.oneFirst(sql.prepared('same_name', valueRow)`select ${text} as value`);
    const texts = Array.from({ length: 30 }, (_, n) => `text ${n}`);
    assert.deepEqual(await Promise.all(texts.map(named)), texts);
    const prepared = await database.any(sql.unsafe`select name from pg_prepared_statements`);
    assert.deepEqual(prepared, []);
  });

  it('finds tables without their schema when it says which, as the console does', async () => {
    const pool = new Pool({
      connectionString: withSessionOptions(pooler.pooledUrl, { search_path: 'console' }),
      max: 3,
    });
    try {
      const read = () => pool.query('select id from users where id = $1', [crypto.randomUUID()]);
      for (const { rows } of await Promise.all([read(), read(), read()]))
        assert.deepEqual(rows, []);
      assert.deepEqual((await pool.query('select id from users')).rows, []);
    } finally {
      await pool.end();
    }
  });

  it('migrates a database once when two processes try, and makes its partitions once', async () => {
    const empty = await createEmptyDatabase();
    const before = await startPgBouncer(empty.url, { sessions: 8 });
    try {
      const applied = await Promise.all([migrate(before.pooledUrl), migrate(before.pooledUrl)]);
      assert.equal(applied.filter(({ length }) => length === 0).length, 1);
      const made = await Promise.all(
        Array.from({ length: 3 }, () =>
          ensureChargePartitions(before.pooledUrl, Date.UTC(2026, 10, 21)),
        ),
      );
      assert.equal(made.flatMap((each) => each.made).length, 8);
      assert.deepEqual(await migrate(before.pooledUrl), []);
    } finally {
      await before.stop();
      await empty.drop();
    }
  });
});
