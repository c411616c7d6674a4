/**
 * Roll-ups against simple sums: for any charges, credits, moves and rebuilds, in any order and at the
 * same time, a developer sees the sum of the charges.
 */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { DAY_MS, HOUR_MS } from '../../../src/domain/durations.ts';
import { rebuildRollups, rollUp } from '../../../src/store/earnings/rollups.ts';
import {
  listAttributedTopUps,
  notePaidBack,
} from '../../../src/store/earnings/top-up-attribution.ts';
import { createTestDatabase, type TestDatabase } from '../../support/stack.ts';
import {
  openEarningsHarness,
  TOOLS,
  type Charged,
  type EarningsHarness,
  type Party,
} from '../../support/earnings-harness.ts';

const MIDNIGHT = Date.UTC(2026, 2, 15);

/** Around midnight and the turn of the hour, to the millisecond, and days away. */
const anyTime = fc
  .constantFrom(0, -1, 1, HOUR_MS, HOUR_MS - 1, -HOUR_MS, -DAY_MS, -DAY_MS - 1, 40 * DAY_MS)
  .map((offset) => MIDNIGHT + offset);
const anyCharge = fc.record({
  consumer: fc.nat(2),
  developer: fc.nat(2),
  tool: fc.constantFrom(...TOOLS),
  amount: fc.integer({ min: 1, max: 40 }),
  timeMs: anyTime,
});
type Drawn = typeof anyCharge extends fc.Arbitrary<infer T> ? T : never;
const anyFlush = fc.array(anyCharge, { minLength: 1, maxLength: 6 });
const anyAct = fc.oneof(
  fc.record({ kind: fc.constant('charge' as const), charges: anyFlush }),
  fc.record({
    kind: fc.constant('topUp' as const),
    consumer: fc.nat(2),
    micros: fc.integer({ min: 1, max: 60 }),
  }),
  fc.record({
    kind: fc.constant('cut' as const),
    consumer: fc.nat(2),
    micros: fc.integer({ min: 1, max: 60 }),
  }),
  fc.record({ kind: fc.constant('rollUp' as const) }),
  fc.record({ kind: fc.constant('rebuild' as const) }),
  // Two flushes of other consumers, a credit and two steps at once.
  fc.record({ kind: fc.constant('together' as const), charges: anyFlush, more: anyFlush }),
);

describe('rollups', () => {
  let testDatabase: TestDatabase;
  let harness: EarningsHarness;
  let parties: Party[];

  before(async () => {
    testDatabase = await createTestDatabase();
    harness = await openEarningsHarness(testDatabase.url);
    // A day has to be a UTC day, in any session time zone.
    const { database } = harness.client;
    await harness.client.query(`alter database ${database} set timezone = 'Asia/Kathmandu'`);
    await harness.close();
    harness = await openEarningsHarness(testDatabase.url);
    parties = await harness.parties(3);
  });
  after(async () => {
    await harness.close();
    await testDatabase.drop();
  });

  const charged = ({ consumer, developer, ...rest }: Drawn): Charged => ({
    ...rest,
    consumer: parties[consumer] as Party,
    developer: parties[developer] as Party,
  });

  it('and tails agree with the charges, after any events in any order', async () => {
    const run = async (act: typeof anyAct extends fc.Arbitrary<infer T> ? T : never) => {
      switch (act.kind) {
        case 'charge':
          return harness.charge(act.charges.map(charged));
        case 'topUp':
          return harness.topUp(parties[act.consumer] as Party, act.micros);
        case 'cut':
          return harness.cut(parties[act.consumer] as Party, act.micros);
        case 'rollUp':
          return rollUp(harness.database);
        case 'rebuild':
          return rebuildRollups(harness.database);
        case 'together':
          return Promise.all([
            harness.charge(act.charges.map(charged)),
            rollUp(harness.database),
            harness.charge(act.more.map(charged)),
            harness.topUp(parties[0] as Party, 30),
            rollUp(harness.database),
            harness.compare(parties, MIDNIGHT),
          ]);
      }
    };
    for (const party of parties) await harness.topUp(party, 200);
    await fc.assert(
      fc.asyncProperty(fc.array(anyAct, { minLength: 4, maxLength: 12 }), async (acts) => {
        for (const act of acts) {
          await run(act);
          await harness.compare(parties, MIDNIGHT);
        }
      }),
      { numRuns: 12, endOnFailure: true },
    );
  });

  it('count a charge once for a top-up when it used two of its lots', async () => {
    const [consumer, developer] = (await harness.parties(2)) as [Party, Party];
    const first = await harness.topUp(consumer, 10);
    await harness.topUp(consumer, 10);
    await harness.lotAgain(consumer, first, 10);
    await harness.charge([{ consumer, developer, amount: 25 }]);
    await harness.compare([developer], MIDNIGHT);
    await rollUp(harness.database);
    await harness.compare([developer], MIDNIGHT);
    await rebuildRollups(harness.database);
    await harness.compare([developer], MIDNIGHT);
  });

  it('count nothing for a top-up that was taken back before its turn came', async () => {
    const [consumer, developer] = (await harness.parties(2)) as [Party, Party];
    await harness.topUp(consumer, 10);
    const second = await harness.topUp(consumer, 10);
    await harness.topUp(consumer, 10);
    await harness.cutWhole(consumer, second);
    assert.equal(await harness.charge([{ consumer, developer, amount: 20 }]), 1);
    await harness.compare([developer], MIDNIGHT);
    await rollUp(harness.database);
    await harness.compare([developer], MIDNIGHT);
  });

  it('leave the tails empty, and move each row once', async () => {
    const [consumer, developer] = (await harness.parties(2)) as [Party, Party];
    await harness.topUp(consumer, 100);
    await harness.charge([{ consumer, developer, amount: 1 }]);
    while ((await rollUp(harness.database)).hasMore);
    assert.equal(await harness.tailRows(), 0);
    assert.deepEqual(await rollUp(harness.database), { moved: 0, hasMore: false });
    await harness.compare([developer], MIDNIGHT);
  });

  it('skip rows that another step is moving, and lose nothing when it dies', async () => {
    const [consumer, developer] = (await harness.parties(2)) as [Party, Party];
    await harness.topUp(consumer, 100);
    await harness.charge([{ consumer, developer, amount: 3 }]);
    await harness.client.query('begin');
    await harness.client.query('select * from farebox.earnings_tail for update');
    await harness.client.query('delete from farebox.attribution_tail');
    await harness.charge([{ consumer, developer, amount: 4 }]);
    assert.deepEqual(await rollUp(harness.database), { moved: 2, hasMore: false });
    await harness.client.query('rollback');
    assert.equal(await harness.tailRows(), 2);
    await harness.compare([developer], MIDNIGHT);
    assert.deepEqual(await rollUp(harness.database), { moved: 2, hasMore: false });
    await harness.compare([developer], MIDNIGHT);
  });

  it('wait during a rebuild, while charges do not', async () => {
    const [consumer, developer] = (await harness.parties(2)) as [Party, Party];
    await harness.topUp(consumer, 100);
    await harness.charge([{ consumer, developer, amount: 3 }]);
    await harness.client.query('begin');
    await harness.client.query(`select pg_advisory_xact_lock(hashtext('farebox.rollups'))`);
    assert.deepEqual(await rollUp(harness.database), { moved: 0, hasMore: false });
    assert.equal(await harness.charge([{ consumer, developer, amount: 3 }]), 1);
    await harness.client.query('rollback');
    assert.deepEqual(await rollUp(harness.database), { moved: 4, hasMore: false });
    await harness.compare([developer], MIDNIGHT);
  });

  it('subtract refunds from top-ups, before and after they are moved', async () => {
    const [consumer, developer] = (await harness.parties(2)) as [Party, Party];
    const who = { developerNumber: developer.developerNumber };
    const shown = async () =>
      (await listAttributedTopUps(harness.database, who, { limit: 10 })).map(
        ({ id, chargedMicros, charges }) => [id, chargedMicros, charges],
      );
    const [first, second] = [await harness.topUp(consumer, 10), await harness.topUp(consumer, 10)];
    await harness.charge([{ consumer, developer, amount: 15 }]);
    const { ledger, consumer: consumerId } = consumer;
    await notePaidBack(harness.database, {
      ...who,
      ledger,
      consumerId,
      fromMicros: 8,
      toMicros: 13,
    });
    const expected = [
      [second, 2, 1],
      [first, 8, 1],
    ];
    assert.deepEqual(await shown(), expected);
    await rollUp(harness.database);
    assert.deepEqual(await shown(), expected);
    await notePaidBack(harness.database, {
      ...who,
      ledger,
      consumerId,
      fromMicros: 0,
      toMicros: 8,
    });
    expected[1] = [first, 0, 1];
    assert.deepEqual(await shown(), expected);
    await rollUp(harness.database);
    assert.deepEqual(await shown(), expected);
  });

  it('take many charges of a few keys in one step, and fewer of many keys', async () => {
    const leave = (rows: number, keys: number) =>
      harness.client.query(
        `insert into farebox.earnings_tail
           (ledger, developer, minute, tool, amount_micros, charges, consumer_id, spend_key)
         select 1, 0, now(), 'search', 1, 1, '00000000-0000-7000-8000-000000000001', 1 + n % $2
         from generate_series(0, $1 - 1) n`,
        [rows, keys],
      );
    while ((await rollUp(harness.database)).hasMore);
    await leave(12_000, 5);
    assert.deepEqual(await rollUp(harness.database), { moved: 12_000, hasMore: false });
    await leave(10_002, 10_001);
    // The two rows of the first key are of one step.
    assert.deepEqual(await rollUp(harness.database), { moved: 10_001, hasMore: true });
    assert.deepEqual(await rollUp(harness.database), { moved: 1, hasMore: false });
    const { rows } = await harness.client.query<{ sum: string }>(
      `select sum(amount_micros) from farebox.key_spending where developer = 0 group by span`,
    );
    assert.deepEqual(rows, [{ sum: '22002' }, { sum: '22002' }]);
  });

  it('take many flushes of a few spend keys in one step, up to 200,000 charges, and fewer of many keys', async () => {
    const [consumer, developer] = (await harness.parties(2)) as [Party, Party];
    /** By 200 keys each, which are numbered from `firstOf` on, an expression of the number `f` of the flush. */
    const leave = (flushes: number, firstOf: string) =>
      harness.client.query(
        `insert into farebox.key_spending_tail
           (ledger, ledgers, consumers, charge_group, spend_keys, developers, tools, days, amounts)
         select $1, array[$1::int2], array[$2::uuid], array_agg(1), array_agg(${firstOf} + k), array_agg($3::int),
           array_agg('search'::text), array_agg(date '2026-03-15'), array_agg(1)
         from generate_series(0, $4 - 1) f cross join generate_series(1, 200) k group by f order by f`,
        [consumer.ledger, consumer.consumer, developer.developerNumber, flushes],
      );
    while ((await rollUp(harness.database)).hasMore);
    await leave(60, '0');
    assert.deepEqual(await rollUp(harness.database), { moved: 60, hasMore: false });
    await leave(60, '200 * f');
    assert.deepEqual(await rollUp(harness.database), { moved: 50, hasMore: true });
    assert.deepEqual(await rollUp(harness.database), { moved: 10, hasMore: false });
    const { rows } = await harness.client.query<{ sum: string }>(
      `select sum(amount_micros), sum(charges)::int as charges from farebox.key_spending
       where consumer_id = $1 group by span`,
      [consumer.consumer],
    );
    const both = { sum: '24000', charges: 24_000 };
    assert.deepEqual(rows, [both, both]);
    await leave(1_001, '0');
    assert.deepEqual(await rollUp(harness.database), { moved: 1_000, hasMore: true });
    assert.deepEqual(await rollUp(harness.database), { moved: 1, hasMore: false });
  });

  it('attribute up to 30,000 charges in one step, and leave flushes with more for the next', async () => {
    const [consumer, developer] = (await harness.parties(2)) as [Party, Party];
    const topUpId = await harness.topUp(consumer, 31_000);
    while ((await rollUp(harness.database)).hasMore);
    await harness.client.query(
      `insert into farebox.attribution_tail
         (ledgers, consumers, spent_before, charge_group, through, developers, amounts)
       select array[$1::int2], array[$2::uuid], array[1000 * f], array_agg(1), array_agg(n order by n),
         array_agg($3::int), array_agg(1)
       from generate_series(0, 30) f cross join generate_series(1, 1000) n group by f order by f`,
      [consumer.ledger, consumer.consumer, developer.developerNumber],
    );
    assert.deepEqual(await rollUp(harness.database), { moved: 30, hasMore: true });
    assert.deepEqual(await rollUp(harness.database), { moved: 1, hasMore: false });
    const [attributed] = await listAttributedTopUps(harness.database, developer, { limit: 1 });
    assert.deepEqual(
      [attributed?.id, attributed?.chargedMicros, attributed?.charges],
      [topUpId, 31_000, 31_000],
    );
  });
});
