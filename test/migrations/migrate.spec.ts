/** `migrate`: everything once or nothing, with concurrent runs and after any failure; and never backwards. */
import assert from 'node:assert/strict';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import {
  migrate,
  NewerDatabaseError,
  UnreleasedDatabaseError,
} from '../../src/store/migrations.ts';
import { createDatabase, sql } from '../../src/store/database.ts';
import { createEmptyDatabase, until, type TestDatabase } from '../support/stack.ts';

const MIGRATIONS = join(import.meta.dirname, '../../migrations');
const FUNCTION = 'functions/refuse_change.sql';

describe('migrate', () => {
  let database: TestDatabase;
  let client: Client;
  /** A copy of migrations/, for a release with different ones. */
  let directory: string;

  beforeEach(async () => {
    database = await createEmptyDatabase();
    client = new Client({ connectionString: database.url });
    await client.connect();
    directory = await mkdtemp(join(tmpdir(), 'farebox-migrations-'));
    await cp(MIGRATIONS, directory, { recursive: true });
  });
  afterEach(async () => {
    await client.end();
    await database.drop();
    await rm(directory, { recursive: true });
  });

  const write = (file: string, text: string) => writeFile(join(directory, file), text);

  async function change(file: string, from: string, to: string): Promise<void> {
    const text = await readFile(join(directory, file), 'utf8');
    assert.ok(text.includes(from));
    await write(file, text.replace(from, to));
  }

  async function hasSchema(): Promise<boolean> {
    const { rows } = await client.query(`select from pg_namespace where nspname = 'farebox'`);
    return rows.length > 0;
  }

  async function definition(): Promise<string> {
    const { rows } = await client.query<{ text: string }>(
      `select pg_get_functiondef('farebox.refuse_change'::regproc) as text`,
    );
    return rows[0]?.text ?? '';
  }

  /** Process numbers of the migrations that wait for an advisory lock. */
  async function waiting(): Promise<number[]> {
    const { rows } = await client.query<{ pid: number }>(
      `select pid from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock' and wait_event = 'advisory'`,
    );
    return rows.map(({ pid }) => pid);
  }

  it('names the migration that it waits for', async () => {
    const holder = await client.query<{ pid: number }>(
      `select pg_backend_pid() as pid, pg_advisory_lock(hashtext('farebox.migrate'))`,
    );
    const said: string[] = [];
    const waits = migrate(database.url, directory, (text) => said.push(text));
    await until(async () => (await waiting()).length === 1);
    await client.query('select pg_advisory_unlock_all()');
    await waits;
    assert.equal(said.length, 1);
    assert.match(said[0] ?? '', new RegExp(`^process ${holder.rows[0]?.pid} of PostgreSQL, `));
  });

  it('does not depend on the search path and the time limits of the role', async () => {
    const name = client.database;
    for (const setting of [
      `search_path = nowhere`,
      `statement_timeout = '1ms'`,
      `transaction_timeout = '2ms'`,
      `idle_in_transaction_session_timeout = '1ms'`,
    ]) {
      await client.query(`alter database ${name} set ${setting}`);
    }
    await migrate(database.url);
    const { rows } = await client.query(
      `select extnamespace::regnamespace::text as schema from pg_extension where extname = 'pg_trgm'`,
    );
    assert.deepEqual(rows, [{ schema: 'farebox' }]);
    const ledger = await createDatabase(database.url, { maxPoolSize: 1, onError: () => {} });
    try {
      assert.equal(await ledger.oneFirst(sql.unsafe`select similarity('agent', 'agent')`), 1);
    } finally {
      await ledger.end();
    }
  });

  it('applies every file once, numbered ones first', async () => {
    const applied = await migrate(database.url);
    assert.equal(applied[0], '0001_migrations');
    assert.ok(applied.indexOf('functions/post_charges') > applied.indexOf('0005_charges'));
    assert.deepEqual(await migrate(database.url), []);
  });

  it('waits for a concurrent one, and then has nothing to do', async () => {
    await client.query(`select pg_advisory_lock(hashtext('farebox.migrate'))`);
    const both = Promise.all([migrate(database.url), migrate(database.url)]);
    await until(async () => (await waiting()).length === 2);
    assert.equal(await hasSchema(), false);
    await client.query(`select pg_advisory_unlock(hashtext('farebox.migrate'))`);
    const [shorter, longer] = (await both).toSorted((a, b) => a.length - b.length);
    assert.deepEqual(shorter, []);
    assert.ok((longer ?? []).includes('0001_migrations'));
  });

  it('leaves nothing behind when a file fails, and names the file', async () => {
    await write('0999_broken.sql', '-- Broken.\nselect 1 / 0;\n');
    await assert.rejects(migrate(database.url, directory), /0999_broken\.sql: division by zero/);
    assert.equal(await hasSchema(), false);
    await write('0999_broken.sql', '-- Mended.\nselect 1;\n');
    assert.ok((await migrate(database.url, directory)).includes('0999_broken'));
  });

  it('leaves nothing behind when it is killed half-way, and completes when it runs again', async () => {
    await write('0999_waiting.sql', '-- Waits.\nselect pg_advisory_xact_lock(4711);\n');
    await client.query('select pg_advisory_lock(4711)');
    const killed = assert.rejects(migrate(database.url, directory));
    const [pid] = await until(async () => {
      const pids = await waiting();
      return pids.length > 0 && pids;
    });
    await client.query('select pg_terminate_backend($1)', [pid]);
    await killed;
    assert.equal(await hasSchema(), false);
    await client.query('select pg_advisory_unlock(4711)');
    const applied = await migrate(database.url, directory);
    assert.equal(applied[0], '0001_migrations');
    assert.ok(applied.includes('0999_waiting'));
  });

  it('refuses a database with a migration of a newer release, and changes nothing', async () => {
    await migrate(database.url);
    await client.query(`insert into farebox.migrations (name, hash) values ('9999_later', '')`);
    await change(FUNCTION, 'is append-only', 'is new');
    await assert.rejects(migrate(database.url, directory), (error) => {
      assert.ok(error instanceof NewerDatabaseError);
      assert.match(error.message, /newer Farebox, which applied 9999_later: run that release/);
      assert.match(
        error.message,
        /changed nothing\. If it is the one just before .+, without `farebox migrate`/,
      );
      return true;
    });
    assert.doesNotMatch(await definition(), /is new/);
  });

  it('refuses a database with migrations from before the first release', async () => {
    await client.query(`
      create schema farebox;
      create table farebox.migrations (id serial primary key, name text not null, run_on timestamp not null);
      insert into farebox.migrations (name, run_on) values ('0001_accounts', now()), ('0002_ledger', now());
    `);
    await assert.rejects(migrate(database.url), (error) => {
      assert.ok(error instanceof UnreleasedDatabaseError);
      assert.match(
        error.message,
        /before the first release.*0001_accounts.*Remove the data directory/,
      );
      return true;
    });
    const { rows } = await client.query(`select from pg_tables where schemaname = 'farebox'`);
    assert.equal(rows.length, 1);
  });

  it('refuses a database that an edited migration would have made differently, except for comments', async () => {
    await migrate(database.url);
    await change('0013_outbox.sql', '-- Notices', '-- Messages');
    assert.deepEqual(await migrate(database.url, directory), []);
    await change('0013_outbox.sql', 'attempts int', 'attempts bigint');
    await assert.rejects(migrate(database.url, directory), (error) => {
      assert.ok(error instanceof UnreleasedDatabaseError);
      assert.match(error.message, /its 0013_outbox is not that of this release/);
      return true;
    });
  });

  it('replaces a function when its file changed, and nothing else', async () => {
    await migrate(database.url);
    await change(FUNCTION, 'is append-only', 'is new');
    assert.deepEqual(await migrate(database.url, directory), ['functions/refuse_change']);
    assert.match(await definition(), /is new/);
    assert.deepEqual(await migrate(database.url, directory), []);
  });

  it('keeps a function whose replacement fails', async () => {
    await migrate(database.url);
    const before = await definition();
    await change(FUNCTION, 'raise exception', 'rise exception');
    await assert.rejects(migrate(database.url, directory), /refuse_change\.sql: syntax error/);
    assert.equal(await definition(), before);
    assert.deepEqual(await migrate(database.url), []);
  });

  it('refuses to replace a function with the text of an earlier release', async () => {
    await change(FUNCTION, 'is append-only', 'is old');
    await migrate(database.url, directory);
    await migrate(database.url);
    const newer = await definition();
    assert.doesNotMatch(newer, /is old/);
    await assert.rejects(migrate(database.url, directory), (error) => {
      assert.ok(error instanceof NewerDatabaseError);
      assert.match(error.message, /newer Farebox, which applied functions\/refuse_change:/);
      return true;
    });
    assert.equal(await definition(), newer);
  });

  it('refuses a database with a function that only a newer release has', async () => {
    await write(
      'functions/hold.sql',
      '-- Later.\ncreate or replace function farebox.hold() returns int language sql as $$ select 1 $$;\n',
    );
    await migrate(database.url, directory);
    await assert.rejects(migrate(database.url), /newer Farebox, which applied functions\/hold:/);
  });

  it('forgets a function that a numbered migration drops', async () => {
    const text =
      '-- Earlier.\ncreate or replace function farebox.hold() returns int language sql as $$ select 1 $$;\n';
    await write('functions/hold.sql', text);
    await migrate(database.url, directory);
    await rm(join(directory, 'functions/hold.sql'));
    await write(
      '0999_drop_hold.sql',
      `-- No release calls it.\ndrop function if exists farebox.hold;\ndelete from farebox.functions where name = 'hold';\n`,
    );
    assert.deepEqual(await migrate(database.url, directory), ['0999_drop_hold']);
    await client.query('drop schema farebox, console cascade');
    assert.ok((await migrate(database.url, directory)).includes('0999_drop_hold'));
  });

  it('refuses a new signature under the old name', async () => {
    await migrate(database.url);
    const before = await definition();
    await change(FUNCTION, 'farebox.refuse_change()', 'farebox.refuse_change(channel text)');
    await change(FUNCTION, 'returns trigger language', 'returns void language');
    await assert.rejects(
      migrate(database.url, directory),
      /farebox\.refuse_change exists with other parameters.*needs a new name/,
    );
    assert.equal(await definition(), before);
  });
});
