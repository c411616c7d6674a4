/** Complete books in a separate database, for tests that plant faults in them and expect doctor to report each. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { Client } from 'pg';
import { findFaults, type Part } from '../../../src/commands/doctor.ts';
import { HOUR_MS } from '../../../src/domain/durations.ts';
import { uuidFloor, uuidOf } from '../../../src/domain/ids.ts';
import type { Finding } from '../../../src/store/doctor/findings.ts';
import { createDatabase } from '../../../src/store/database.ts';
import { rebuildRollups } from '../../../src/store/earnings/rollups.ts';
import { createTestAccounts } from '../../support/accounts.ts';
import { createTestDatabase, farebox, type Environment } from '../../support/stack.ts';

/**
 * A consumer with three credits, an hour between each and the next: $10.00 by hand, $20.00 through the hosted checkout
 * and an adjustment of $5.00. Two charges of $1.00 are spent, an hour between them. UUIDs.
 */
export interface Planted {
  readonly account: string;
  readonly consumer: string;
  readonly manual: string;
  readonly checkout: string;
  /** The movements of the three credits. */
  readonly manualCredit: string;
  readonly checkoutCredit: string;
  readonly adjustment: string;
  readonly firstCharge: string;
  readonly lastCharge: string;
  /** The developer who made all the charges. */
  readonly developer: string;
}

export interface Plant {
  readonly what: string;
  /** Statements in which `:name` is a member of `Planted`. They run past the schema's own guards. */
  readonly statements: readonly string[];
  /** Each finding: its check and its subject. */
  readonly finds: (planted: Planted) => readonly (readonly [check: string, subject: string])[];
}

/** The test account of the planted account, and the number of its developer. */
export const TEST_ACCOUNT: readonly string[] = [
  `insert into farebox.accounts (id, email, ledger, consumer_id, developer_id, live_account_id)
    values (uuidv7(), 'test:' || ':account', 2048, uuidv7(), uuidv7(), ':account')`,
  `insert into farebox.consumers (ledger, id)
    select ledger, consumer_id from farebox.accounts where live_account_id = ':account'`,
];
export const TEST_DEVELOPER = `(select developer_number from farebox.accounts where live_account_id = ':account')`;

export interface Examined {
  readonly ok: boolean;
  readonly findings: readonly Finding[];
}

export interface PlantedBooks {
  readonly sql: Client;
  readonly env: Environment;
  readonly accounts: readonly Planted[];
  /** Runs the statements of a plant for one consumer. */
  readonly plant: (planted: Planted, statements: readonly string[]) => Promise<void>;
  /** The JSON that doctor prints. */
  readonly examine: (...args: string[]) => Promise<Examined>;
  readonly close: () => Promise<void>;
}

export async function openPlantedBooks(
  count: number,
  more: Environment = {},
): Promise<PlantedBooks> {
  const database = await createTestDatabase();
  const env = { ...more, DATABASE_URL: database.url };
  const sql = new Client({ connectionString: database.url });
  await sql.connect();
  const created = await createTestAccounts(database.url, count, 10);
  const consumers = created.map(({ consumerId }) => uuidOf('consumer', consumerId) ?? '');
  const accounts = await plantAccounts(sql, consumers);
  await rebuild(database.url);
  return {
    sql,
    env,
    accounts,
    plant: async (planted, statements) => {
      for (const statement of statements) await sql.query(filledIn(statement, planted));
    },
    examine: (...args) => examine(env, args),
    close: async () => {
      await sql.end();
      await database.drop();
    },
  };
}

/** Sums of earnings for charges that were made by SQL alone. */
export async function rebuild(databaseUrl: string): Promise<void> {
  const pool = await createDatabase(databaseUrl, { maxPoolSize: 1, onError: () => {} });
  await rebuildRollups(pool);
  await pool.end();
}

/** Plants each fault in its own consumer, and expects these findings of doctor and no others. */
export async function expectFindings(
  { accounts, env, plant }: PlantedBooks,
  part: Part,
  plants: readonly Plant[],
): Promise<void> {
  for (const [index, { statements }] of plants.entries())
    await plant(at(accounts, index), statements);
  const left = [...(await findFaults(env, [part])).findings];
  for (const [index, { what, finds }] of plants.entries()) {
    for (const [check, subject] of finds(at(accounts, index))) {
      const found = left.findIndex((each) => each.check === check && each.subject === subject);
      assert.ok(found >= 0, `${what}: "${check}" does not name ${subject}`);
      left.splice(found, 1);
    }
  }
  assert.deepEqual(left, [], 'findings that nobody planted');
}

/** The output of `farebox doctor --json`, for any exit code. */
async function examine(env: Environment, args: readonly string[]): Promise<Examined> {
  const printed = await farebox(['doctor', '--json', ...args], { env }).catch(
    (error: { stdout: string }) => error,
  );
  const text = typeof printed === 'string' ? printed : printed.stdout;
  const report = JSON.parse(text) as Examined & { error?: { message: string } };
  assert.equal(report.error, undefined);
  assert.equal(report.ok, report.findings.length === 0);
  assert.equal(typeof printed === 'string', report.ok, 'it exits with 1 when a check fails');
  return report;
}

async function plantAccounts(sql: Client, consumers: readonly string[]): Promise<Planted[]> {
  const now = Date.now();
  const { rows: developers } = await sql.query<{ id: string }>(
    'select developer_id as id from farebox.accounts where developer_number = 1',
  );
  const planted: Planted[] = [];
  for (const [index, consumer] of consumers.entries()) {
    const id = (hoursAgo: number) => idAt(now - hoursAgo * HOUR_MS, `${index} ${hoursAgo}`);
    const { rows } = await sql.query<{ account: string; manual: string }>(
      `select t.account_id as account, t.id as manual from farebox.top_ups t where consumer_id = $1`,
      [consumer],
    );
    planted.push({
      account: rows[0]?.account ?? '',
      manual: rows[0]?.manual ?? '',
      consumer,
      checkout: id(6),
      manualCredit: id(7),
      checkoutCredit: id(5),
      adjustment: id(4),
      firstCharge: id(3),
      lastCharge: id(2),
      developer: developers[0]?.id ?? '',
    });
  }
  for (const each of planted) {
    for (const statement of WHOLE) await sql.query(filledIn(statement, each));
  }
  return planted;
}

const WHOLE = [
  `update farebox.movements set id = ':manualCredit', created_at = uuid_extract_timestamp(':manualCredit')
    where consumer_id = ':consumer'`,
  `update farebox.lots set movement_id = ':manualCredit' where consumer_id = ':consumer'`,
  `insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, status, amount_micros,
      session_id, payment_intent_id, opened_at, completed_at)
    select ':checkout', ledger, id, ':account', 'checkout', 'completed', 20000000, 'cs_:checkout',
      'pi_:checkout', now(), now() from farebox.consumers where id = ':consumer'`,
  `insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros, top_up_id, reason, created_at)
    select ledger, consumers.id, m.id, m.kind, m.micros, m.top_up, m.reason, uuid_extract_timestamp(m.id)
    from farebox.consumers, (values
      (':checkoutCredit'::uuid, 'top_up', 20000000, ':checkout'::uuid, null),
      (':adjustment', 'adjustment', 5000000, null, 'a test')) as m (id, kind, micros, top_up, reason)
    where consumers.id = ':consumer'`,
  `insert into farebox.lots (ledger, consumer_id, movement_id, from_micros, to_micros, top_up_id)
    select ledger, consumers.id, l.id, l.begins, l.ends, l.top_up from farebox.consumers, (values
      (':checkoutCredit'::uuid, 10000000, 30000000, ':checkout'::uuid),
      (':adjustment', 30000000, 35000000, null)) as l (id, begins, ends, top_up)
    where consumers.id = ':consumer'`,
  `insert into farebox.charges (ledger, id, consumer_id, developer, tool, receipt_key, amount_micros,
      spent_micros, balance_micros)
    select ledger, h.id, consumers.id, 1, 'search', 1, 1000000, h.spent, 35000000 - h.spent
    from farebox.consumers, (values
      (':firstCharge'::uuid, 1000000), (':lastCharge', 2000000)) as h (id, spent)
    where consumers.id = ':consumer'`,
  `update farebox.consumers set credited_micros = 35000000, spent_micros = 2000000 where id = ':consumer'`,
];

/** A UUIDv7 of this instant, always the same for a name. */
function idAt(timeMs: number, name: string): string {
  return uuidFloor(Math.floor(timeMs)).slice(0, 24) + hash('sha256', name).slice(0, 12);
}

function filledIn(statement: string, planted: Planted): string {
  return statement.replaceAll(
    /:([a-z]\w*)/gi,
    (text, name: string) => planted[name as keyof Planted] ?? text,
  );
}

function at(accounts: readonly Planted[], index: number): Planted {
  const planted = accounts[index];
  assert.ok(planted, 'a plant needs a consumer of its own');
  return planted;
}

/** The schema does not stop changes by hand in the database, so doctor has to find them. */
export async function dropGuards(sql: Client): Promise<void> {
  await sql.query(`
    do $$
    declare
      statement text;
    begin
      for statement in
        select format('alter table %s drop constraint %I', conrelid::regclass, conname) from pg_constraint
        where connamespace = 'farebox'::regnamespace and contype in ('c', 'f', 'u') and coninhcount = 0
        union all
        select format('drop index %s', indexrelid::regclass) from pg_index
        where indisunique
          and indrelid in (select oid from pg_class where relnamespace = 'farebox'::regnamespace)
          and not exists (select from pg_constraint where conindid = indexrelid)
      loop
        execute statement;
      end loop;
    end $$`);
}
