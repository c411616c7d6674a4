/** Months of charges: created ahead, without disturbing traffic, and read only where necessary. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { uuidFloor } from '../../../src/domain/ids.ts';
import {
  findDeveloperCharge,
  listConsumerCharges,
  listDeveloperCharges,
} from '../../../src/store/charges/list-charges.ts';
import { createDatabase, type Database } from '../../../src/store/database.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { createTestAccount } from '../../support/accounts.ts';
import { createMigratedDatabase, until, type TestDatabase } from '../../support/stack.ts';
import { newConsumers, newDraft, post, type Consumer } from '../../support/charge-drafts.ts';
import { startExplaining } from '../nested-plans.ts';
import { blocksOf, partitionsRead, plansOf } from '../query-plans.ts';

const NOVEMBER = Date.UTC(2026, 10, 21);
/** The developer of the first account. */
const DEVELOPER = { developerNumber: 1 };

describe('the partitions of charges', () => {
  let testDatabase: TestDatabase;
  let client: Client;
  let database: Database;

  beforeEach(async () => {
    testDatabase = await createMigratedDatabase();
    client = new Client({ connectionString: testDatabase.url });
    await client.connect();
    database = await createDatabase(testDatabase.url, { maxPoolSize: 2, onError: () => {} });
    await createTestAccount(testDatabase.url, 0);
  });
  afterEach(async () => {
    await database.end();
    await client.end();
    await testDatabase.drop();
  });

  const ensure = (nowMs = NOVEMBER) => ensureChargePartitions(testDatabase.url, nowMs);
  const partitions = async (table = 'charges') => {
    const { rows } = await client.query<{ name: string }>(
      `select relname as name from pg_inherits join pg_class on oid = inhrelid
       where inhparent = $1::regclass order by 1`,
      [`farebox.${table}`],
    );
    return rows.map(({ name }) => name);
  };
  const MONTHS = ['2026_11', '2026_12', '2027_01', '2027_02'];
  const AHEAD = MONTHS.map((month) => `charges_${month}`);
  /** In the order of creation. */
  const BOTH = [...AHEAD, ...MONTHS.map((month) => `holds_${month}`)];

  /** Charges at these times, oldest first. */
  const chargeAt = async (consumer: Consumer, ...times: number[]) => {
    const drafts = times.map((timeMs) => ({ ...newDraft(consumer, 1), id: uuidFloor(timeMs) }));
    for (const { kind } of await post(database, drafts)) assert.equal(kind, 'posted');
    return drafts.map(({ id }) => id);
  };
  const consumerOf = async () => (await newConsumers(client, 1, 1_000))[0] as Consumer;
  const whereIs = async (id: string | undefined) => {
    const { rows } = await client.query<{ name: string }>(
      'select tableoid::regclass::text as name from farebox.charges where id = $1',
      [id],
    );
    return rows.map(({ name }) => name.replace('farebox.', ''));
  };

  /** Also inside of functions. */
  async function partitionsReadBy(
    read: (connection: Database) => Promise<unknown>,
  ): Promise<string[]> {
    const explaining = await startExplaining(testDatabase.url, database);
    try {
      const plans = await explaining.plansOf(read);
      return [...new Set(plans.flatMap(partitionsRead))].toSorted();
    } finally {
      await explaining.stop();
    }
  }

  it('are made for this month and three more, over the end of the year', async () => {
    assert.deepEqual(await ensure(), { made: BOTH, putOff: [] });
    assert.deepEqual(await partitions(), [...AHEAD, 'charges_rest']);
    assert.deepEqual(await partitions('holds'), [...MONTHS.map((m) => `holds_${m}`), 'holds_rest']);
    const { rows } = await client.query<{ bound: string }>(
      `select pg_get_expr(relpartbound, oid) as bound from pg_class where relname = 'charges_2026_12'`,
    );
    const [from, to] = [Date.UTC(2026, 11), Date.UTC(2027, 0)].map(uuidFloor);
    assert.equal(rows[0]?.bound, `FOR VALUES FROM ('${from}') TO ('${to}')`);
  });

  it('are not made again for an archived month, when the clock is months behind', async () => {
    await client.query(`insert into farebox.archived_months (month, charges, amount_micros)
      values ('2026-11-01', 0, 0)`);
    const { made } = await ensure();
    assert.deepEqual(
      made,
      BOTH.filter((name) => !name.endsWith('2026_11')),
    );
  });

  it('are created once, under concurrent attempts', async () => {
    const results = await Promise.all(Array.from({ length: 6 }, () => ensure()));
    assert.deepEqual(results.flatMap(({ made }) => made).toSorted(), BOTH.toSorted());
    assert.deepEqual(await ensure(Date.UTC(2026, 11)), {
      made: ['charges_2027_03', 'holds_2027_03'],
      putOff: [],
    });
  });

  it('ask for no lock when nothing is missing', async () => {
    await ensure();
    await client.query('begin');
    await client.query('lock table farebox.charges, farebox.charges_rest in access exclusive mode');
    assert.deepEqual(await ensure(), { made: [], putOff: [] });
    await client.query('rollback');
  });

  it('wait for traffic by short turns, and are put off when it does not end', async () => {
    await client.query('begin');
    await client.query('select from farebox.charges_rest');
    const holds = BOTH.filter((name) => !AHEAD.includes(name));
    assert.deepEqual(await ensure(), { made: holds, putOff: AHEAD });
    const patient = ensure();
    const waits = `select from pg_locks where relation = 'farebox.charges_rest'::regclass
      and not granted`;
    await until(async () => (await client.query(waits)).rowCount);
    await client.query('rollback');
    assert.deepEqual(await patient, { made: AHEAD, putOff: [] });
  });

  it('take over what fell into the rest before they were made', async () => {
    const consumer = await consumerOf();
    await ensure();
    const [early, late] = await chargeAt(consumer, Date.UTC(2027, 3, 30), Date.UTC(2027, 4, 2));
    assert.deepEqual(await whereIs(late), ['charges_rest']);
    const { made } = await ensure(Date.UTC(2027, 4, 3));
    assert.equal(made.length, 9);
    assert.deepEqual(await whereIs(late), ['charges_2027_05']);
    assert.deepEqual(await whereIs(early), ['charges_2027_04']);
    const listed = await listConsumerCharges(database, consumer, {}, { limit: 10 });
    assert.deepEqual(
      listed.map(({ id }) => id),
      [late, early],
    );
  });

  it('take over what fell into the rest while a clock was months behind, although no month ahead is missing', async () => {
    await ensure();
    const [id] = await chargeAt(await consumerOf(), Date.UTC(2026, 7, 3));
    assert.deepEqual(await whereIs(id), ['charges_rest']);
    const leaving = ensureChargePartitions(testDatabase.url, NOVEMBER, 'leave');
    assert.deepEqual(await leaving, { made: [], putOff: [] });
    assert.deepEqual(await ensure(), { made: ['charges_2026_08'], putOff: [] });
    assert.deepEqual(await whereIs(id), ['charges_2026_08']);
  });

  it('are left by a process that starts while the rest has rows, and taken over by the next that does not', async () => {
    const [id] = await chargeAt(await consumerOf(), NOVEMBER);
    assert.deepEqual(await ensureChargePartitions(testDatabase.url, NOVEMBER, 'leave'), {
      made: MONTHS.map((month) => `holds_${month}`),
      putOff: AHEAD,
    });
    assert.deepEqual(await whereIs(id), ['charges_rest']);
    assert.deepEqual((await ensure()).made, AHEAD);
    assert.deepEqual(await whereIs(id), ['charges_2026_11']);
  });

  it('leave rows in the rest that a reader with an older snapshot still needs', async () => {
    const [id] = await chargeAt(await consumerOf(), NOVEMBER);
    const reader = new Client({ connectionString: testDatabase.url });
    await reader.connect();
    await reader.query('begin isolation level repeatable read');
    await reader.query('select from farebox.accounts');
    const ensured = ensure();
    await until(async () => {
      const copy = `select to_regclass('farebox_moving.charges_2026_11') is not null as exists`;
      if (!(await client.query<{ exists: boolean }>(copy)).rows[0]?.exists) return false;
      return (await client.query('select from farebox_moving.charges_2026_11')).rowCount === 1;
    });
    const { rows } = await reader.query<{ id: string }>('select id from farebox.charges');
    assert.deepEqual(rows, [{ id }]);
    await reader.query('commit');
    await reader.end();
    assert.deepEqual((await ensured).made.toSorted(), BOTH.toSorted());
    assert.deepEqual(await whereIs(id), ['charges_2026_11']);
  });

  it('take over nothing twice after a process died on the way', async () => {
    const consumer = await consumerOf();
    const [before] = await chargeAt(consumer, NOVEMBER);
    await client.query(`create table farebox_moving.charges_rest (like farebox.charges including all);
      create table farebox_moving.charges_2026_11 (like farebox.charges including all)`);
    // The trigger copies these, to a table that is then thrown away.
    const [during] = await chargeAt(consumer, NOVEMBER + 1);
    const [other] = await chargeAt(consumer, Date.UTC(2031, 0));
    const { rows } = await client.query(
      'select id from farebox_moving.charges_2026_11 union all select id from farebox_moving.charges_rest',
    );
    assert.deepEqual(rows, [{ id: during }, { id: other }]);
    await ensure();
    assert.deepEqual(await whereIs(before), ['charges_2026_11']);
    assert.deepEqual(await whereIs(during), ['charges_2026_11']);
    assert.deepEqual(await whereIs(other), ['charges_2031_01']);
  });

  it('are made from a table that was left behind unattached', async () => {
    await client.query('create table farebox.charges_2026_12 (like farebox.charges including all)');
    assert.deepEqual((await ensure()).made, BOTH);
  });

  describe('of three years', () => {
    const THREE_YEARS = 36;
    let dormant: Consumer;
    let dormantIds: readonly string[];

    beforeEach(async () => {
      for (let month = 0; month < THREE_YEARS; month += 4) {
        await ensure(Date.UTC(2024, month, 15));
      }
      assert.equal((await partitions()).length, THREE_YEARS + 1);
      dormant = await consumerOf();
      dormantIds = await chargeAt(dormant, Date.UTC(2024, 0, 5), Date.UTC(2024, 0, 6));
      const busy = await consumerOf();
      const months = Array.from({ length: THREE_YEARS }, (_, month) => Date.UTC(2024, month, 9));
      await chargeAt(busy, ...months);
    });

    it('are not read but for the one of the charge that is asked for by its id', async () => {
      const [id = ''] = dormantIds;
      const [plan] = await plansOf(database, client, (connection) =>
        findDeveloperCharge(connection, DEVELOPER, id),
      );
      assert.ok(plan);
      assert.equal(plan['Actual Rows'], 1);
      assert.deepEqual(partitionsRead(plan), ['charges_2024_01']);
    });

    it('are not read outside of the time that is asked for', async () => {
      const filter = { fromId: uuidFloor(Date.UTC(2025, 4)), toId: uuidFloor(Date.UTC(2025, 6)) };
      const read = await partitionsReadBy((connection) =>
        listDeveloperCharges(connection, DEVELOPER, filter, { limit: 51 }),
      );
      assert.deepEqual(read, ['charges_2025_05', 'charges_2025_06']);
      const [plan] = await plansOf(database, client, (connection) =>
        listConsumerCharges(connection, dormant, filter, { limit: 51 }),
      );
      assert.ok(plan);
      assert.deepEqual(partitionsRead(plan), ['charges_2025_05', 'charges_2025_06']);
    });

    it('are read where a tool’s charges are, and nowhere else', async () => {
      const read = await partitionsReadBy(async (connection) => {
        const found = await listDeveloperCharges(
          connection,
          DEVELOPER,
          { tool: 'search' },
          { limit: 2 },
        );
        assert.equal(found.length, 2);
      });
      assert.deepEqual(read, ['charges_2026_11', 'charges_2026_12']);
    });

    it('cost a dormant consumer’s first page one probe each, under any traffic of others', async () => {
      const [plan] = await plansOf(database, client, (connection) =>
        listConsumerCharges(connection, dormant, {}, { limit: 51 }),
      );
      assert.ok(plan);
      assert.equal(plan['Actual Rows'], 2);
      // One block of a small index, the height of a large one: four blocks.
      assert.ok(blocksOf(plan) <= 4 * (THREE_YEARS + 1), `${blocksOf(plan)} blocks`);
    });
  });
});
