/** A database that was restored without its rows, or with some of them, is noticed. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { examineLedger } from '../../src/store/doctor/ledger-checks.ts';
import { createDatabase } from '../../src/store/database.ts';
import { checkMigrated, migrate, UnmigratedDatabaseError } from '../../src/store/migrations.ts';
import { createTestAccounts } from '../support/accounts.ts';
import {
  createEmptyDatabase,
  createTestDatabase,
  farebox,
  type TestDatabase,
} from '../support/stack.ts';

describe('a restored database', () => {
  let database: TestDatabase;
  let client: Client;

  async function open(created: Promise<TestDatabase>): Promise<void> {
    database = await created;
    client = new Client({ connectionString: database.url });
    await client.connect();
  }
  afterEach(async () => {
    await client.end();
    await database.drop();
  });

  /** As after `pg_dump --schema-only` and its restore: every table, and no row. */
  const loseRows = () =>
    client.query(`
      alter table farebox.audit_entries disable trigger user;
      alter table farebox.consents disable trigger user;
      alter table farebox.rate_cards disable trigger user;
      do $$ begin
        execute (
          select 'truncate ' || string_agg(oid::regclass::text, ', ') || ' restart identity' from pg_class
          where relnamespace in ('farebox'::regnamespace, 'console'::regnamespace) and relkind in ('r', 'p')
            and not relispartition
        );
      end $$;
      alter table farebox.audit_entries enable trigger user;
      alter table farebox.consents enable trigger user;
      alter table farebox.rate_cards enable trigger user`);

  async function findings(): Promise<readonly (readonly [string, string])[]> {
    const pool = await createDatabase(database.url, { maxPoolSize: 1, onError: () => {} });
    try {
      const found = await examineLedger(pool, { parts: ['schema'] });
      return found.map(({ subject, detail }) => [subject, detail]);
    } finally {
      await pool.end();
    }
  }

  const env = () => ({
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: '127.0.0.1:9',
    MASTER_SECRET: '0123456789abcdef0123456789abcdef',
    STRIPE_SECRET_KEY: 'rk_test_1',
    STRIPE_WEBHOOK_SECRET: 'whsec_1',
  });

  it('has all that migrate writes', async () => {
    await open(createTestDatabase());
    await createTestAccounts(database.url, 2, 10);
    await checkMigrated(database.url);
    assert.deepEqual(await findings(), []);
  });

  it('is refused in one sentence by api, worker and migrate when it has tables and no rows', async () => {
    await open(createTestDatabase());
    await loseRows();
    for (const command of ['api', 'worker', 'migrate']) {
      await assert.rejects(farebox([command], { env: env() }), (error: { stderr?: string }) => {
        assert.match(error.stderr ?? '', /no rows that say which release made them/, command);
        return true;
      });
    }
    const { rows } = await client.query('select from farebox.processor_mode');
    assert.equal(rows.length, 0, 'a refused start writes nothing');
    assert.deepEqual((await findings())[0], ['migration 0001_migrations', 'has no record']);
  });

  it('is refused by a process when it lacks a migration, until migrate has run', async () => {
    await open(createEmptyDatabase());
    await assert.rejects(checkMigrated(database.url), UnmigratedDatabaseError);
    await migrate(database.url);
    await checkMigrated(database.url);
    await client.query(
      'delete from farebox.migrations where name = (select max(name) from farebox.migrations)',
    );
    await assert.rejects(
      farebox(['api'], { env: env() }),
      /lacks 1 of this release's migrations and functions, the first of them \d{4}_\w+: run `farebox migrate`/,
    );
  });

  it('is refused by a process when it lacks a function, unless a newer release dropped it', async () => {
    await open(createTestDatabase());
    await client.query(`delete from farebox.functions where name = 'post_charges'`);
    await assert.rejects(
      checkMigrated(database.url),
      /lacks 1 of this release's migrations and functions, the first of them functions\/post_charges: run/,
    );
    await client.query(`insert into farebox.migrations (name, hash) values ('9999_newer', 'x')`);
    await checkMigrated(database.url);
  });

  it('is reported by doctor when functions are not recorded, or a number would be given twice', async () => {
    await open(createTestDatabase());
    await createTestAccounts(database.url, 2, 10);
    await client.query(`delete from farebox.functions where name = 'post_charges'`);
    await client.query('alter table farebox.accounts alter column developer_number restart with 1');
    const { rows } = await client.query<{ number: number }>(
      'select max(developer_number) as number from farebox.accounts',
    );
    assert.deepEqual(await findings(), [
      ['function post_charges', 'has no record'],
      [
        'column farebox.accounts.developer_number',
        `a row has ${rows[0]?.number}, and the last number given is 0`,
      ],
    ]);
  });
});
