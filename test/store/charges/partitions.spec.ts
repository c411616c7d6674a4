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
import { createTestAccounts } from '../../support/accounts.ts';
import { createTestDatabase, until, type TestDatabase } from '../../support/stack.ts';
import { newConsumers, newDraft, post, type Consumer } from '../../support/charge-drafts.ts';
import { blocksOf, partitionsRead, plansOf } from '../query-plans.ts';

const NOVEMBER = Date.UTC(2026, 10, 21);
/** Of the first account. */
const DEVELOPER = { developerNumber: 1 };

describe('the partitions of charges', () => {
  let testDatabase: TestDatabase;
  let client: Client;
  let database: Database;

  beforeEach(async () => {
    testDatabase = await createTestDatabase();
    client = new Client({ connectionString: testDatabase.url });
    await client.connect();
    database = await createDatabase(testDatabase.url, { maxPoolSize: 2, onError: () => {} });
    await createTestAccounts(testDatabase.url, 1, 0);
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
  const BOTH = MONTHS.flatMap((month) => [`charges_${month}`, `holds_${month}`]);

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

  it('are made for this month and three more, over the end of the year', async () => {
    assert.deepEqual(await ensure(), { made: BOTH, putOff: [], kept: [] });
    assert.deepEqual(await partitions(), [...AHEAD, 'charges_rest']);
    assert.deepEqual(await partitions('holds'), [...MONTHS.map((m) => `holds_${m}`), 'holds_rest']);
    const { rows } = await client.query<{ bound: string }>(
      `select pg_get_expr(relpartbound, oid) as bound from pg_class where relname = 'charges_2026_12'`,
    );
    const [from, to] = [Date.UTC(2026, 11), Date.UTC(2027, 0)].map(uuidFloor);
    assert.equal(rows[0]?.bound, `FOR VALUES FROM ('${from}') TO ('${to}')`);
  });

  it('are created once, under concurrent attempts', async () => {
    const results = await Promise.all(Array.from({ length: 6 }, () => ensure()));
    assert.deepEqual(results.flatMap(({ made }) => made).toSorted(), BOTH.toSorted());
    assert.deepEqual(await ensure(Date.UTC(2026, 11)), {
      made: ['charges_2027_03', 'holds_2027_03'],
      putOff: [],
      kept: [],
    });
  });

  it('ask for no lock when nothing is missing', async () => {
    await ensure();
    await client.query('begin');
    await client.query('lock table farebox.charges, farebox.charges_rest in access exclusive mode');
    assert.deepEqual(await ensure(), { made: [], putOff: [], kept: [] });
    await client.query('rollback');
  });

  it('wait for traffic by short turns, and are put off when it does not end', async () => {
    await client.query('begin');
    await client.query('select from farebox.charges_rest');
    assert.deepEqual(await ensure(), { made: [], putOff: BOTH, kept: [] });
    const patient = ensure();
    const waits = `select from pg_locks where relation = 'farebox.charges_rest'::regclass
      and not granted`;
    await until(async () => (await client.query(waits)).rowCount);
    await client.query('rollback');
    assert.deepEqual(await patient, { made: BOTH, putOff: [], kept: [] });
  });

  it('take over what fell into the rest before they were made', async () => {
    const consumer = await consumerOf();
    await ensure();
    const [early, late] = await chargeAt(consumer, Date.UTC(2027, 3, 30), Date.UTC(2027, 4, 2));
    assert.deepEqual(await whereIs(late), ['charges_rest']);
    const { made } = await ensure(Date.UTC(2027, 4, 3));
    assert.equal(made.length, 8);
    assert.deepEqual(await whereIs(late), ['charges_2027_05']);
    assert.deepEqual(await whereIs(early), ['charges_rest']);
    const listed = await listConsumerCharges(database, consumer, {}, { limit: 10 });
    assert.deepEqual(
      listed.map(({ id }) => id),
      [late, early],
    );
  });

  it('leave a month in the rest that is too large to move beside charges, and are made for the others', async () => {
    const [november, december] = [Date.UTC(2026, 10, 5), Date.UTC(2026, 11, 5)];
    await client.query(
      `insert into farebox.charges (amount_micros, spent_micros, balance_micros, id, consumer_id,
         developer, ledger, receipt_key, tool, metadata)
       select 1, n, 0, (lpad(to_hex(at + n), 12, '0') || '70008' || lpad(to_hex(n), 15, '0'))::uuid,
         uuidv7(), 1, 0, 1, 'search', ''
       from unnest($1::int8[], $2::int[]) as month(at, rows), generate_series(1, rows) n`,
      [
        [november, december],
        [5_001, 1_000],
      ],
    );
    assert.deepEqual(await ensure(), {
      made: BOTH.filter((name) => name !== 'charges_2026_11'),
      putOff: [],
      kept: ['charges_2026_11'],
    });
    const { rows } = await client.query<{ name: string; rows: string }>(
      `select tableoid::regclass::text as name, count(*) as rows from farebox.charges group by 1 order by 1`,
    );
    assert.deepEqual(
      rows.map(({ name, rows: count }) => [name.replace('farebox.', ''), Number(count)]),
      [
        ['charges_2026_12', 1_000],
        ['charges_rest', 5_001],
      ],
    );
    const consumer = await consumerOf();
    const [id] = await chargeAt(consumer, Date.UTC(2026, 10, 6));
    assert.deepEqual(await whereIs(id), ['charges_rest']);
    assert.deepEqual((await ensure()).kept, ['charges_2026_11']);
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
      for (const list of [
        (page: { limit: number }) =>
          plansOf(database, client, (connection) =>
            listDeveloperCharges(connection, DEVELOPER, filter, page),
          ),
        (page: { limit: number }) =>
          plansOf(database, client, (connection) =>
            listConsumerCharges(connection, dormant, filter, page),
          ),
      ]) {
        const [plan] = await list({ limit: 51 });
        assert.ok(plan);
        assert.deepEqual(partitionsRead(plan), ['charges_2025_05', 'charges_2025_06']);
      }
    });

    it('are read where a tool’s charges are, and nowhere else', async () => {
      const [, plan] = await plansOf(database, client, (connection) =>
        listDeveloperCharges(connection, DEVELOPER, { tool: 'search' }, { limit: 2 }),
      );
      assert.ok(plan);
      assert.equal(plan['Actual Rows'], 2);
      assert.deepEqual(partitionsRead(plan), ['charges_2026_11', 'charges_2026_12']);
    });

    it('cost a dormant consumer’s first page one probe each, under any traffic of others', async () => {
      const [plan] = await plansOf(database, client, (connection) =>
        listConsumerCharges(connection, dormant, {}, { limit: 51 }),
      );
      assert.ok(plan);
      assert.equal(plan['Actual Rows'], 2);
      // One block of a small index, the height of a large one: four blocks.
      assert.ok(blocksOf(plan) <= 4 * (THREE_YEARS + 1), `${blocksOf(plan)} blocks`);
      const startedAt = performance.now();
      await listConsumerCharges(database, dormant, {}, { limit: 51 });
      assert.ok(performance.now() - startedAt < 2_000);
    });
  });
});
