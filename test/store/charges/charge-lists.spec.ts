/** Lists and sums of charges against the same from all charges, filtered and added up in the simplest way. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { Client } from 'pg';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/domain/durations.ts';
import { uuidFloor, uuidTimeMs } from '../../../src/domain/ids.ts';
import { asMicros } from '../../../src/domain/money.ts';
import {
  listConsumerCharges,
  listDeveloperCharges,
  sumConsumerUsage,
  type DeveloperChargeFilter,
} from '../../../src/store/charges/list-charges.ts';
import { ClosedCharges } from '../../../src/store/charges/closed-charges.ts';
import type { Database } from '../../../src/store/database.ts';
import {
  listToolEarnings,
  type ToolIntervalEarnings,
} from '../../../src/store/earnings/earnings-by-tool.ts';
import { rollUp } from '../../../src/store/earnings/rollups.ts';
import { createTestAccounts } from '../../support/accounts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { newConsumers, newDraft, post, type Consumer } from '../../support/charge-drafts.ts';
import { startExplaining } from '../nested-plans.ts';
import { nodesOf } from '../query-plans.ts';

/** The start of an hour, a day and a month. */
const BEGIN = Date.UTC(2026, 8, 1);
const TOOLS = ['rare', 'often', '__proto__'];

type Infer<T> = T extends fc.Arbitrary<infer U> ? U : never;

interface Row {
  readonly id: string;
  readonly consumer: string;
  readonly developer: number;
  readonly tool: string;
  readonly amount: number;
}

/** Around BEGIN, in quarters, so that hours, days and the month are crossed, and two often coincide. */
const anyMinute = fc
  .oneof(fc.integer({ min: -360, max: 360 }), fc.integer({ min: -12_000, max: 12_000 }))
  .map((quarters) => quarters / 4);
const anyCharge = fc.record({
  minute: anyMinute,
  tool: fc.constantFrom(...TOOLS, 'often', 'often'),
  consumer: fc.nat(1),
  developer: fc.integer({ min: 1, max: 2 }),
  amount: fc.integer({ min: 1, max: 9 }),
});
const anyBatches = fc.array(
  fc.record({
    charges: fc.array(anyCharge, { minLength: 1, maxLength: 12 }),
    rollsUp: fc.boolean(),
  }),
  { minLength: 1, maxLength: 5 },
);
const anyQuery = fc.record({
  tool: fc.option(fc.constantFrom(...TOOLS, 'none'), { nil: undefined }),
  consumer: fc.option(fc.nat(1), { nil: undefined }),
  from: fc.option(anyMinute, { nil: undefined }),
  to: fc.option(anyMinute, { nil: undefined }),
  limit: fc.integer({ min: 1, max: 5 }),
});
const anyQueries = fc.array(anyQuery, { minLength: 8, maxLength: 8 });
const DEVELOPER = { developerNumber: 1 };

describe('lists of charges', () => {
  let ledger: TestLedger;
  let database: Database;
  let client: Client;

  before(async () => {
    ledger = await openTestLedger(2);
    ({ database } = ledger);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    await client.query(`alter database ${client.database} set timezone = 'Asia/Kathmandu'`);
    await createTestAccounts(ledger.url, 2, 0);
  });
  after(async () => {
    await client.end();
    await ledger.drop();
  });

  /** Consumers that no account has, except for their ledger. */
  const write = async (batches: Infer<typeof anyBatches>): Promise<Consumer[]> => {
    await client.query(`truncate farebox.charges, farebox.earnings, farebox.earnings_tail,
      farebox.attribution_tail, farebox.top_up_earnings`);
    const consumers = await newConsumers(client, 2, 1_000_000);
    for (const [n, { ledger, consumerId }] of consumers.entries()) {
      await client.query(
        'update farebox.accounts set ledger = $1, consumer_id = $2 where developer_number = $3',
        [ledger, consumerId, n + 1],
      );
    }
    for (const { charges, rollsUp } of batches) {
      const drafts = charges.map(({ minute, tool, consumer, developer, amount }) => ({
        ...newDraft(consumers[consumer] as Consumer, amount),
        id: idAt(minute).slice(0, -12) + randomBytes(6).toString('hex'),
        developerNumber: developer,
        tool,
      }));
      for (const { kind } of await post(database, drafts)) assert.equal(kind, 'posted');
      if (rollsUp) await rollUp(database);
    }
    return consumers;
  };
  const all = async (): Promise<Row[]> => {
    const { rows } = await client.query<Row>(`
      select id, consumer_id as consumer, developer, tool, amount_micros::int as amount
      from farebox.charges order by id desc
    `);
    return rows;
  };

  it('show all matches, each once and in order, page after page', async () => {
    await fc.assert(
      fc.asyncProperty(anyBatches, anyQueries, async (batches, queries) => {
        const consumers = await write(batches);
        const rows = (await all()).filter(({ developer }) => developer === 1);
        for (const { consumer, limit, ...query } of queries) {
          const consumerId = consumer === undefined ? undefined : consumers[consumer]?.consumerId;
          const filter = { ...filterOf(query), consumerId };
          const seen: string[] = [];
          for (;;) {
            const page = { limit, beforeId: seen.at(-1) };
            const found = await listDeveloperCharges(database, DEVELOPER, filter, page);
            seen.push(...found.map(({ id }) => id));
            if (found.length < limit) break;
          }
          assert.deepEqual(
            seen,
            rows.filter(matches(filter)).map(({ id }) => id),
          );
        }
      }),
      { numRuns: 40 },
    );
  });

  it('of a rare tool are found without reading the other charges of their hours', async () => {
    const hours = Array.from({ length: 12 }, (_, n) => 60 * n);
    const usual = { tool: 'often', consumer: 0, developer: 1, amount: 1 };
    await write(
      hours.map((hour) => ({
        charges: [
          { ...usual, tool: 'rare', minute: hour + 30 },
          ...Array.from({ length: 600 }, (_, n) => ({ ...usual, minute: hour + n / 10 })),
        ],
        rollsUp: hour % 120 === 0,
      })),
    );
    const filter = { tool: 'rare' };
    const explaining = await startExplaining(ledger.url, database);
    const plans = await explaining.plansOf(async (connection) => {
      const found = await listDeveloperCharges(connection, DEVELOPER, filter, { limit: 10 });
      assert.equal(found.length, 10);
    });
    await explaining.stop();
    const reads = plans
      .flatMap(nodesOf)
      .filter((node) => node['Relation Name']?.startsWith('charges'));
    assert.ok(reads.length > 0);
    const inVain = reads.reduce(
      (n, node) => n + (node['Rows Removed by Filter'] ?? 0) * node['Actual Loops'],
      0,
    );
    assert.ok(inVain < 11 * 12, `${inVain} charges were read in vain`);
  });

  it('of a consumer with many charges are found and summed in steps', async () => {
    const charges = Array.from({ length: 7_000 }, (_, n) => ({
      tool: n % 2_500 === 3 ? 'rare' : 'often',
      consumer: 0,
      developer: n % 2_500 === 3 ? 1 : 2,
      amount: 1,
      minute: n / 10,
    }));
    const batches = Array.from({ length: 14 }, (_, n) => charges.slice(500 * n, 500 * (n + 1)));
    const [consumer] = await write(batches.map((each) => ({ charges: each, rollsUp: false })));
    assert.ok(consumer);
    const rows = await all();
    const rare = rows.filter(({ tool }) => tool === 'rare').map(({ id }) => id);
    const page = { limit: 10 };
    const { consumerId } = consumer;
    const closedCharges = new ClosedCharges(300);
    // Otherwise PostgreSQL reads the whole of a table that is so small.
    await client.query(`alter database ${client.database} set enable_seqscan = off`);
    const explaining = await startExplaining(ledger.url, database);
    await client.query(`alter database ${client.database} reset enable_seqscan`);
    const plans = await explaining.plansOf(async (connection) => {
      const lists = [
        await listConsumerCharges(connection, consumer, { tool: 'rare' }, page),
        await listDeveloperCharges(connection, DEVELOPER, { consumerId }, page),
        await listDeveloperCharges(connection, DEVELOPER, { consumerId, tool: 'rare' }, page),
      ];
      for (const list of lists) {
        assert.deepEqual(
          list.map(({ id }) => id),
          rare,
        );
      }
      const usual = rows.filter(({ tool }) => tool === 'often');
      for (const query of [{}, { from: 100 }, { to: 600.05 }, { from: 100, to: 600.05 }]) {
        const filter = filterOf({ from: undefined, to: undefined, ...query, tool: 'often' });
        const summed = await sumConsumerUsage(connection, closedCharges, consumer, filter);
        assert.equal(summed, sum(usual.filter(matches(filter))));
      }
    });
    await explaining.stop();
    const reads = plans
      .flatMap(nodesOf)
      .filter((node) => node['Relation Name']?.startsWith('charges'));
    const rowsOf = (node: (typeof reads)[number]) =>
      (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
    assert.ok(reads.length > 20);
    const most = Math.max(...reads.map(rowsOf));
    assert.ok(most < 6_000, `a statement read ${most} charges`);
  });

  it('are summed for a consumer between any two instants, though some changed places', async () => {
    // Two charges that change places are less than a minute apart: DISORDER_MS_MAX.
    const anyDelay = fc.integer({ min: -4, max: 4 }).map((tenths) => tenths / 10);
    const anyJittered = fc.array(fc.tuple(anyCharge, anyDelay), { minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(anyJittered, anyQueries, async (jittered, queries) => {
        const inOrder = jittered
          .toSorted(([a, x], [b, y]) => a.minute + x - b.minute - y)
          .map(([charge]) => charge);
        const [consumer] = await write([{ charges: inOrder, rollsUp: false }]);
        assert.ok(consumer);
        const rows = (await all()).filter((row) => row.consumer === consumer.consumerId);
        for (const query of queries) {
          const filter = filterOf(query);
          const expected = sum(rows.filter(matches(filter)));
          assert.equal(
            await sumConsumerUsage(database, new ClosedCharges(3), consumer, filter),
            expected,
          );
        }
      }),
      { numRuns: 60 },
    );
  });

  for (const [interval, lengthMs] of [
    ['hour', HOUR_MS],
    ['day', DAY_MS],
  ] as const) {
    it(`add up to the earnings of each tool in each ${interval}, page after page`, async () => {
      await fc.assert(
        fc.asyncProperty(anyBatches, anyQueries, async (batches, queries) => {
          await write(batches);
          const rows = (await all()).filter(({ developer }) => developer === 1);
          for (const { from, to, limit } of queries) {
            const range = { fromMs: wholeOf(from, lengthMs), toMs: wholeOf(to, lengthMs) };
            const seen: ToolIntervalEarnings[] = [];
            for (;;) {
              const page = { limit, after: seen.at(-1) };
              const found = await listToolEarnings(database, DEVELOPER, range, interval, page);
              seen.push(...found);
              if (found.length < limit) break;
            }
            assert.deepEqual(seen.toSorted(byToolAndTime), earnedBy(rows, range, lengthMs));
          }
        }),
        { numRuns: 25 },
      );
    });
  }
});

const idAt = (minute: number): string => uuidFloor(BEGIN + minute * MINUTE_MS);

/** The start of the minute's hour or day. */
function wholeOf(minute: number | undefined, lengthMs: number): number | undefined {
  if (minute === undefined) return undefined;
  return Math.floor((BEGIN + minute * MINUTE_MS) / lengthMs) * lengthMs;
}

function filterOf({ tool, from, to }: Pick<Infer<typeof anyQuery>, 'tool' | 'from' | 'to'>) {
  return {
    tool,
    fromId: from === undefined ? undefined : idAt(from),
    toId: to === undefined ? undefined : idAt(to),
  };
}

const matches =
  ({ tool, consumerId, fromId, toId }: DeveloperChargeFilter) =>
  (row: Row): boolean =>
    (tool === undefined || row.tool === tool) &&
    (consumerId === undefined || row.consumer === consumerId) &&
    (fromId === undefined || row.id >= fromId) &&
    (toId === undefined || row.id < toId);

function sum(rows: readonly Row[]): number {
  return rows.reduce((total, { amount }) => total + amount, 0);
}

function earnedBy(
  rows: readonly Row[],
  { fromMs = 0, toMs = Infinity }: { fromMs: number | undefined; toMs: number | undefined },
  lengthMs: number,
): ToolIntervalEarnings[] {
  const groups = Map.groupBy(rows, ({ id, tool }) => {
    const timeMs = uuidTimeMs(id);
    return `${timeMs - (timeMs % lengthMs)} ${tool}`;
  });
  return [...groups]
    .map(([key, group]) => ({
      tool: key.slice(key.indexOf(' ') + 1),
      beginsMs: Number(key.slice(0, key.indexOf(' '))),
      earningsMicros: asMicros(sum(group)),
      charges: group.length,
    }))
    .filter(({ beginsMs }) => beginsMs >= fromMs && beginsMs < toMs)
    .toSorted(byToolAndTime);
}

function byToolAndTime(a: ToolIntervalEarnings, b: ToolIntervalEarnings): number {
  return a.tool === b.tool ? a.beginsMs - b.beginsMs : a.tool < b.tool ? -1 : 1;
}
