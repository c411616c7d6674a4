/** A month is archived in steps: a run may be killed at any time, the books are right, and the next one continues. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { archiveMonth } from '../../../src/store/charges/archive-month.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { createDatabase } from '../../../src/store/database.ts';
import { rollUp } from '../../../src/store/earnings/rollups.ts';
import {
  openEarningsHarness,
  type EarningsHarness,
  type Party,
} from '../../support/earnings-harness.ts';
import { createTestDatabase, until, type TestDatabase } from '../../support/stack.ts';

const CHARGES = 600;
const AMOUNT = 7;
const NOW = new Date();
const OLD_MS = Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() - 6);
const MONTH = new Date(OLD_MS).toISOString().slice(0, 7);
const TABLE = `farebox.charges_${MONTH.replace('-', '_')}`;
const PROGRESS = 'farebox_moving.archived_months_so_far';
const PARTS = ['budgets', 'charges', 'earnings'] as const;

describe('an archive in steps', () => {
  let testDatabase: TestDatabase;
  let harness: EarningsHarness;
  let client: Client;

  beforeEach(async () => {
    testDatabase = await createTestDatabase();
    harness = await openEarningsHarness(testDatabase.url);
    client = new Client({ connectionString: testDatabase.url });
    await client.connect();
    await ensureChargePartitions(testDatabase.url, OLD_MS);
    const [developer, ...consumers] = (await harness.parties(3)) as [Party, ...Party[]];
    for (const consumer of consumers) {
      await harness.topUp(consumer, AMOUNT * CHARGES);
      const charges = Array.from({ length: CHARGES / consumers.length }, (_, n) => ({
        consumer,
        developer,
        amount: AMOUNT,
        timeMs: OLD_MS + n,
      }));
      await harness.charge(charges);
    }
    while ((await rollUp(harness.database)).hasMore);
  });
  afterEach(async () => {
    await client?.end();
    await harness?.close();
    await testDatabase?.drop();
  });

  const archive = (chargesPerStep: number) =>
    archiveMonth(harness.database, MONTH, Date.now(), chargesPerStep);
  const findings = () => examineLedger(harness.database, { parts: PARTS });
  const archived = {
    kind: 'archived',
    charges: CHARGES,
    amountMicros: BigInt(AMOUNT * CHARGES),
  } as const;

  /** Kills a run between two of its steps of one charge each. Returns how many it had summed up. */
  async function killOnTheWay(): Promise<number> {
    const killed = await createDatabase(testDatabase.url, { maxPoolSize: 1, onError: () => {} });
    const archiving = assert.rejects(archiveMonth(killed, MONTH, Date.now(), 1));
    await until(async () => {
      const { rowCount } = await client.query('select where to_regclass($1) is not null', [
        PROGRESS,
      ]);
      if (rowCount === 0) return false;
      return (await client.query(`select from ${PROGRESS} where charges > 0`)).rowCount === 1;
    });
    await client.query('begin');
    const { rows } = await client.query<{ charges: number }>(
      `select charges::int from ${PROGRESS} for update`,
    );
    const waiting = await until(async () => {
      const { rows: found } = await harness.client.query<{ pid: number }>(
        `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
           and query ~ 'for update'`,
      );
      return found[0];
    });
    await client.query('select pg_terminate_backend($1)', [waiting.pid]);
    await archiving;
    await client.query('commit');
    await killed.end();
    return rows[0]?.charges ?? 0;
  }

  it('keeps the books right when it is killed, and continues where it was', async () => {
    const summedUp = await killOnTheWay();
    assert.ok(summedUp > 0 && summedUp < CHARGES, `${summedUp} charges`);
    assert.deepEqual(await findings(), []);
    // What was summed up is not read again, or its other tool would be seen.
    const first = `(select id from ${TABLE} order by ledger, consumer_id, id limit 1)`;
    await client.query(`update ${TABLE} set tool = 'another' where id = ${first}`);
    assert.partialDeepStrictEqual(await archive(50), archived);
    const { rows } = await client.query('select distinct tool from farebox.archived_charges');
    assert.equal(rows.length, 1);
    assert.deepEqual(await findings(), []);
    const left = await client.query(`select from pg_class where relname ~ '_so_far$'`);
    assert.equal(left.rowCount, 0);
  });

  it('begins again when the sums are not those of the month', async () => {
    await killOnTheWay();
    await client.query(`update ${PROGRESS} set amount_micros = amount_micros + 1`);
    assert.partialDeepStrictEqual(await archive(50), archived);
    assert.deepEqual(await findings(), []);
  });

  it('waits for another command, and sums up again if that one found its sums old and began anew', async () => {
    const archiving = archive(1);
    await until(async () => {
      const { rowCount } = await client.query('select where to_regclass($1) is not null', [
        PROGRESS,
      ]);
      return rowCount === 1;
    });
    // Before its last transaction, which takes this lock.
    await client.query(`begin; select pg_advisory_xact_lock(hashtext('farebox.archive'))`);
    await until(async () => {
      const { rowCount } = await harness.client.query(
        // Longer than a lock is usually waited for.
        `select from pg_stat_activity where datname = current_database() and wait_event = 'advisory'
           and query_start < now() - interval '6 s'`,
      );
      return rowCount === 1;
    });
    await client.query(
      `update ${PROGRESS} set begun_at = now(), charges = 0, amount_micros = 0, ledger = -1;
       delete from farebox_moving.archived_charges_so_far; delete from farebox_moving.archived_spending_so_far;
       delete from farebox_moving.archived_attribution_so_far;
       delete from farebox_moving.archived_key_spending_so_far; commit`,
    );
    assert.partialDeepStrictEqual(await archiving, archived);
    assert.deepEqual(await findings(), []);
  });

  it('is made once by two commands at a time', async () => {
    const results = await Promise.all([archive(10), archive(10)]);
    const kinds = results.map(({ kind }) => kind).toSorted();
    assert.deepEqual(kinds, ['archived', 'not_next']);
    assert.partialDeepStrictEqual(
      results.find(({ kind }) => kind === 'archived'),
      archived,
    );
    assert.deepEqual(await findings(), []);
  });
});
