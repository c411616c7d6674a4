/** Counting a consumer's charges by tool in steps, against the simplest sum. */
import assert from 'node:assert/strict';
import { uuidFloor } from '../../../src/domain/ids.ts';
import { DAY_MS } from '../../../src/domain/durations.ts';
import { createDatabase, inOneSnapshot } from '../../../src/store/database.ts';
import { ClosedCharges, LATEST_BEGINNING_MS } from '../../../src/store/charges/closed-charges.ts';
import { createTestDatabase, type TestDatabase } from '../../support/stack.ts';
import {
  openEarningsHarness,
  TOOLS,
  type Charged,
  type EarningsHarness,
  type Party,
} from '../../support/earnings-harness.ts';

const CHARGES_PER_STEP = 3;

describe('charges of a month by tool', () => {
  let testDatabase: TestDatabase;
  let harness: EarningsHarness;
  let consumer: Party;
  let developer: Party;
  const now = Date.now();
  const month = { fromMs: now - 20 * DAY_MS, toMs: now + 10 * DAY_MS };

  before(async () => {
    testDatabase = await createTestDatabase();
    harness = await openEarningsHarness(testDatabase.url);
  });
  after(async () => {
    await harness?.close();
    await testDatabase?.drop();
  });
  beforeEach(async () => {
    [consumer, developer] = (await harness.parties(2)) as [Party, Party];
    await harness.topUp(consumer, 10_000_000);
  });

  const chargeAt = (timeMs: number, place: number): Charged => ({
    consumer,
    developer,
    amount: place + 1,
    tool: TOOLS[place % TOOLS.length] ?? '',
    timeMs,
  });
  const count = async (closed: ClosedCharges) => {
    const payer = { ledger: consumer.ledger, consumerId: consumer.consumer };
    const counted = await closed.countClosed(harness.database, payer, month);
    return inOneSnapshot(harness.database, (tx) => closed.countByTool(tx, payer, month, counted));
  };
  const added = async () => {
    const { rows } = await harness.client.query<{ tool: string; charges: string; micros: string }>(
      `select tool, count(*) as charges, sum(amount_micros) as micros from farebox.charges
       where consumer_id = $1 group by tool order by tool collate "C"`,
      [consumer.consumer],
    );
    return rows.map(({ tool, charges, micros }) => ({
      tool,
      charges: Number(charges),
      amountMicros: Number(micros),
    }));
  };

  it('are those of every step and of the open minute', async () => {
    const closed = new ClosedCharges(CHARGES_PER_STEP);
    for (let place = 0; place < 11; place += 1) {
      await harness.charge([chargeAt(now - 15 * DAY_MS + place * DAY_MS, place)]);
    }
    await harness.charge([chargeAt(now, 11), chargeAt(now, 12)]);
    assert.deepEqual(await count(closed), await added());
    await harness.charge([chargeAt(Date.now(), 13)]);
    assert.deepEqual(await count(closed), await added());
  });

  it('are counted once when they are closed', async () => {
    const closed = new ClosedCharges(CHARGES_PER_STEP);
    await harness.charge([chargeAt(now - DAY_MS, 0), chargeAt(now - 2 * LATEST_BEGINNING_MS, 1)]);
    const before = await count(closed);
    assert.deepEqual(before, await added());
    // Nobody can make such a charge: it shows that the closed ones are not read again.
    await harness.charge([chargeAt(now - DAY_MS, 2)]);
    assert.deepEqual(await count(closed), before);
    assert.deepEqual(await count(new ClosedCharges(CHARGES_PER_STEP)), await added());
  });

  it("are counted again after Postgres' clock was set back, while they were being counted too", async () => {
    const closed = new ClosedCharges(CHARGES_PER_STEP);
    await harness.charge([chargeAt(now - DAY_MS, 0)]);
    const before = await count(closed);
    const counting = count(closed);
    closed.forget();
    assert.deepEqual(await counting, before);
    await harness.charge([chargeAt(now - DAY_MS, 1)]);
    assert.deepEqual(await count(closed), await added());
  });

  it('are counted once for callers at the same time', async () => {
    const closed = new ClosedCharges(CHARGES_PER_STEP);
    for (let place = 0; place < 11; place += 1) {
      await harness.charge([chargeAt(now - DAY_MS + place, place)]);
    }
    const counts = await Promise.all([count(closed), count(closed), count(closed)]);
    for (const each of [...counts, await count(closed)]) assert.deepEqual(each, await added());
  });

  it('that may still commit are read again', async () => {
    const closed = new ClosedCharges(CHARGES_PER_STEP);
    const aheadMs = Date.now() + LATEST_BEGINNING_MS;
    await harness.charge([chargeAt(aheadMs, 0)]);
    await count(closed);
    await harness.charge([chargeAt(aheadMs, 1)]);
    assert.deepEqual(await count(closed), await added());
  });

  it('that an old transaction has not committed are counted once it has', async () => {
    const closed = new ClosedCharges(CHARGES_PER_STEP);
    const madeMs = now - 10 * LATEST_BEGINNING_MS;
    await harness.charge([chargeAt(madeMs, 0)]);
    // To this connection, transactions are as old as if time had passed.
    await harness.client.query(`
      create schema later;
      create function later.pg_stat_get_activity(pid int)
        returns table (datid oid, backend_xid xid, xact_start timestamptz) language sql as $$
          select datid, backend_xid, xact_start - interval '1 hour' from pg_catalog.pg_stat_get_activity(pid)
        $$
    `);
    const url = new URL(testDatabase.url);
    url.searchParams.set('options', '-c search_path=later,farebox,public,pg_catalog');
    const later = await createDatabase(url.href, { maxPoolSize: 1, onError: () => {} });
    try {
      await harness.client.query('begin');
      await harness.client.query(
        `insert into farebox.charges select (x).* from (
           select jsonb_populate_record(c, jsonb_build_object('id', $2::uuid)) as x
           from farebox.charges c where consumer_id = $1
         ) other`,
        [consumer.consumer, uuidFloor(madeMs + 1)],
      );
      const payer = { ledger: consumer.ledger, consumerId: consumer.consumer };
      await closed.countClosed(later, payer, month);
      await harness.client.query('commit');
      assert.deepEqual(await count(closed), await added());
    } finally {
      await harness.client.query('rollback');
      await later.end();
    }
  });
});
