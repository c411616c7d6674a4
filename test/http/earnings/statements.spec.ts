/** Monthly statements of both roles: they add up, continue each other, and end at the current books. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { uuidFloor, wireId } from '../../../src/domain/ids.ts';
import { asMicros, decimalOf, microsOfDollars } from '../../../src/domain/money.ts';
import { isComplete } from '../../../src/http/handlers/earnings/statements.ts';
import {
  ConsumerStatementReply,
  DeveloperStatementReply,
  StatementReply,
} from '../../../src/schemas/statements.ts';
import { rollUp } from '../../../src/store/earnings/rollups.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, bodyOf, call, charge } from '../../support/http.ts';
import { newDraft, post } from '../../support/charge-drafts.ts';
import {
  openEarningsHarness,
  type EarningsHarness,
  type Party,
} from '../../support/earnings-harness.ts';

const NOW = new Date();
const monthAt = (ahead: number): number =>
  Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() + ahead);
const nameAt = (ahead: number): string => new Date(monthAt(ahead)).toISOString().slice(0, 7);
const TOOLS = ['search', '=fetch', '__proto__'];
/** A minute of the month before the last one. */
const minute = (n: number): string => new Date(monthAt(-2) + n * 60_000).toISOString();
/** The three months before this one. */
const MONTHS = [-3, -2, -1];

const anyTime = fc.integer({ min: monthAt(-3), max: monthAt(0) - 1 });
const anyEdge = fc.constantFrom(
  ...MONTHS.flatMap((month) => [monthAt(month), monthAt(month + 1) - 1]),
);
const anyCharge = fc.record({
  timeMs: fc.oneof(anyTime, anyEdge),
  tool: fc.constantFrom(...TOOLS),
  amount: fc.integer({ min: 1, max: 3_000_000 }),
});

describe('/v1/statements/:month', () => {
  let api: TestApi;
  let harness: EarningsHarness;

  before(async () => {
    api = await startTestApi();
    harness = await openEarningsHarness(api.databaseUrl);
  });
  after(async () => {
    await harness.close();
    await api.stop();
  });

  const get = (month: string, key: string) => call(api, 'GET', `/v1/statements/${month}`, { key });
  const ofConsumer = async ({ consumerKey }: TestAccount, month: string) =>
    bodyOf(await get(month, consumerKey), 200, ConsumerStatementReply);
  const ofDeveloper = async ({ developerKey }: TestAccount, month: string) =>
    bodyOf(await get(month, developerKey), 200, DeveloperStatementReply);
  const rowsOf = async (month: string, key: string): Promise<string[][]> => {
    const { status, body } = await get(`${month}.csv`, key);
    assert.equal(status, 200);
    const { complete } = bodyOf(await get(month, key), 200, StatementReply);
    const lines = String(body).trimEnd().split('\r\n');
    assert.equal(lines.shift(), 'date,entry,tool,topUpId,reason,count,amount,tax,complete');
    return lines.map((line) => {
      const cells = line.split(',');
      assert.equal(cells.pop(), String(complete));
      assert.equal(cells.pop(), '', 'no tax');
      return cells;
    });
  };
  /** Top-ups at these times, before anything is charged. */
  const credit = async (party: Party, micros: number, times: readonly number[]) => {
    for (const timeMs of times) {
      const id = await harness.topUp(party, micros);
      await api.sql.query('update farebox.movements set created_at = $1 where top_up_id = $2', [
        new Date(timeMs).toISOString(),
        id,
      ]);
    }
  };

  it('lists refunds of charges one by one, and by day when there are more than a thousand', async () => {
    const [consumer] = (await harness.parties(1)) as [Party];
    const refundsIn = async () =>
      (await ofConsumer(consumer, nameAt(-2))).movements.map(({ amount, reason, createdAt }) => ({
        amount,
        reason,
        createdAt,
      }));
    // A thousand in the first 1,000 minutes of the month, then more, until the next day.
    const refund = (from: number, to: number) =>
      api.sql.query(
        `insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros, reason, created_at)
         select $1, $2, uuidv7(), 'charge_refund', 1000, 'ch_' || n, $3::timestamptz + n * interval '1 minute'
         from generate_series($4::int, $5::int) n`,
        [consumer.ledger, consumer.consumer, minute(0), from, to],
      );
    await refund(0, 999);
    const listed = await refundsIn();
    assert.equal(listed.length, 1_000);
    assert.deepEqual(listed[1], { amount: 0.001, reason: 'ch_1', createdAt: minute(1) });
    await refund(1_000, 1_441);
    assert.deepEqual(await refundsIn(), [
      { amount: 1.44, reason: null, createdAt: minute(1_439) },
      { amount: 0.002, reason: null, createdAt: minute(1_441) },
    ]);
    assert.equal((await ofConsumer(consumer, nameAt(-2))).closingBalance, 1.442);
  });

  it('lists top-ups with their tax one by one, and by day when there are more than a thousand', async () => {
    const [consumer] = (await harness.parties(1)) as [Party];
    // With a cent of tax each, and one refund, which stays listed by itself.
    const topUps = (from: number, to: number) =>
      api.sql.query(
        `with made as (
           insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, status, amount_micros, tax_micros)
           select uuidv7(), $1, $2, $6, 'checkout', 'completed', 1000000, 10000
           from generate_series($4::int, $5::int) returning id
         )
         insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros, top_up_id, created_at)
         select $1, $2, uuidv7(), 'top_up', 1000000, id,
           $3::timestamptz + ($4 - 1 + row_number() over ()) * interval '1 minute' from made`,
        [consumer.ledger, consumer.consumer, minute(0), from, to, consumer.accountId],
      );
    await api.sql.query(
      `insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros, reason, created_at)
       values ($1, $2, uuidv7(), 'charge_refund', 500000, 'ch_1', $3)`,
      [consumer.ledger, consumer.consumer, minute(0)],
    );
    await topUps(1, 1_000);
    const { movements } = await ofConsumer(consumer, nameAt(-2));
    assert.equal(movements.length, 1_001);
    assert.deepEqual(movements[1]?.createdAt, minute(1));
    assert.equal(movements[1]?.tax, 0.01);
    await topUps(1_001, 1_441);
    const summed = await ofConsumer(consumer, nameAt(-2));
    const byDay = { kind: 'top_up', topUpId: null, reason: null };
    assert.deepEqual(summed.movements, [
      { kind: 'charge_refund', amount: 0.5, topUpId: null, reason: 'ch_1', createdAt: minute(0) },
      { ...byDay, amount: 1_439, tax: 14.39, createdAt: minute(1_439) },
      { ...byDay, amount: 2, tax: 0.02, createdAt: minute(1_441) },
    ]);
    assert.equal(summed.closingBalance, 1_441.5);
    const { body } = await get(`${nameAt(-2)}.csv`, consumer.consumerKey);
    assert.equal(String(body).trimEnd().split('\r\n').length, 1 + 1 + 3 + 1);
  });

  it('shows a consumer the opening balance, credits, charges by tool, and the closing balance', async () => {
    const [consumer, developer] = (await harness.parties(2)) as [Party, Party];
    await credit(consumer, 5_000_000, [monthAt(-2), monthAt(-1) - 1]);
    for (const [timeMs, tool, amount] of [
      [monthAt(-2), 'search', 1_000_001],
      [monthAt(-1) - 1, 'search', 1],
      [monthAt(-1) - 1, 'fetch', 2_000_000],
      [monthAt(-1), 'fetch', 500_000],
    ] as const) {
      await harness.charge([{ consumer, developer, timeMs, tool, amount }]);
    }
    const { movements, ...first } = await ofConsumer(consumer, nameAt(-2));
    assert.deepEqual(first, {
      month: nameAt(-2),
      from: new Date(monthAt(-2)).toISOString(),
      to: new Date(monthAt(-1)).toISOString(),
      complete: true,
      consumerId: consumer.consumerId,
      openingBalance: 0,
      charges: [
        { tool: 'fetch', charges: 1, amount: 2 },
        { tool: 'search', charges: 2, amount: 1.000002 },
      ],
      closingBalance: 6.999998,
    });
    assert.deepEqual(
      movements.map(({ kind, amount, reason, createdAt }) => [kind, amount, reason, createdAt]),
      [
        ['top_up', 5, null, new Date(monthAt(-2)).toISOString()],
        ['top_up', 5, null, new Date(monthAt(-1) - 1).toISOString()],
      ],
    );
    assert.match(movements[0]?.topUpId ?? '', /^tu_[0-9a-f]{32}$/);
    const next = await ofConsumer(consumer, nameAt(-1));
    assert.deepEqual(
      [next.openingBalance, next.movements, next.closingBalance],
      [6.999998, [], 6.499998],
    );
    const earned = await ofDeveloper(developer, nameAt(-2));
    const days = [monthAt(-2), monthAt(-1) - 1].map((timeMs) =>
      new Date(timeMs).toISOString().slice(0, 10),
    );
    assert.deepEqual(earned, {
      month: nameAt(-2),
      from: first.from,
      to: first.to,
      complete: true,
      developerId: developer.developerId,
      openingEarnings: 0,
      earned: [
        { day: days[1], tool: 'fetch', charges: 1, amount: 2 },
        { day: days[0], tool: 'search', charges: 1, amount: 1.000001 },
        { day: days[1], tool: 'search', charges: 1, amount: 0.000001 },
      ],
      refunds: [],
      closingEarnings: 3.000002,
    });
  });

  it('adds up to the micro-dollar, month after month, as JSON and as CSV, for both roles', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyCharge, { maxLength: 25 }),
        fc.array(anyTime, { minLength: 1, maxLength: 3 }),
        fc.boolean(),
        async (charges, times, rollsUp) => {
          const [consumer, developer] = (await harness.parties(2)) as [Party, Party];
          await credit(consumer, 30_000_000, times);
          for (const { timeMs, tool, amount } of charges.toSorted((a, b) => a.timeMs - b.timeMs)) {
            await harness.charge([{ consumer, developer, timeMs, tool, amount }]);
          }
          if (rollsUp) await rollUp(harness.database);
          let [balance, earnings] = [0, 0];
          for (const month of [...MONTHS, 0].map(nameAt)) {
            const spent = await ofConsumer(consumer, month);
            assert.equal(microsOf(spent.openingBalance), balance);
            balance += sum(spent.movements) - sum(spent.charges);
            assert.equal(microsOf(spent.closingBalance), balance);
            assertAddsUp(await rowsOf(month, consumer.consumerKey), balance);
            const earned = await ofDeveloper(developer, month);
            assert.equal(microsOf(earned.openingEarnings), earnings);
            earnings += sum(earned.earned) - sum(earned.refunds);
            assert.equal(microsOf(earned.closingEarnings), earnings);
            assertAddsUp(await rowsOf(month, developer.developerKey), earnings);
          }
          const { rows } = await api.sql.query<{ balance: string }>(
            'select (credited_micros - spent_micros)::text as balance from farebox.consumers where id = $1',
            [consumer.consumer],
          );
          assert.equal(String(balance), rows[0]?.balance);
          assert.equal(earnings, charges.length === 0 ? 0 : times.length * 30_000_000 - balance);
        },
      ),
      { numRuns: 12 },
    );
  });

  it('counts every charge, even when neighbors in time changed places', async () => {
    const [consumer] = (await harness.parties(1)) as [Party];
    await credit(consumer, 1_000_000, [monthAt(-3)]);
    const at = (timeMs: number, amount: number) => ({
      ...newDraft({ ledger: consumer.ledger, consumerId: consumer.consumer }, amount),
      id: uuidFloor(timeMs),
    });
    const edge = monthAt(-1);
    await post(harness.database, [
      at(edge + 2, 1),
      at(edge - 1, 10),
      at(edge, 100),
      at(edge - 2, 1_000),
    ]);
    const [before, since] = [
      await ofConsumer(consumer, nameAt(-2)),
      await ofConsumer(consumer, nameAt(-1)),
    ];
    assert.deepEqual(
      [before.closingBalance, since.openingBalance, since.closingBalance],
      [0.99899, 0.99899, 0.998889],
    );
  });

  it('covers the month so far while the month runs', async () => {
    const account = await api.createAccount(10);
    await charge(api, account, { tool: 'search', amount: 0.5 });
    const spent = await ofConsumer(account, nameAt(0));
    assert.deepEqual([spent.complete, spent.openingBalance, spent.closingBalance], [false, 0, 9.5]);
    const earned = await ofDeveloper(account, nameAt(0));
    assert.deepEqual([earned.complete, earned.closingEarnings], [false, 0.5]);
  });

  it('is complete one minute after the month, when no charge of it can still be in flight', () => {
    const month = { fromMs: monthAt(-1), toMs: monthAt(0) };
    assert.equal(isComplete(month, monthAt(0) + 59_999), false);
    assert.equal(isComplete(month, monthAt(0) + 60_000), true);
  });

  it('counts a refund on its own day, for both roles', async () => {
    const [consumer, developer] = (await harness.parties(2)) as [Party, Party];
    await credit(consumer, 5_000_000, [monthAt(-1)]);
    await harness.charge([
      { consumer, developer, timeMs: monthAt(-1), tool: 'search', amount: 2_000_000 },
    ]);
    await harness.charge([{ consumer, developer, tool: 'search', amount: 1_000_000 }]);
    const { rows } = await api.sql.query<{ id: string }>(
      'select id from farebox.charges where consumer_id = $1 order by id limit 1',
      [consumer.consumer],
    );
    const refund = await call(
      api,
      'POST',
      `/v1/charges/${wireId('charge', rows[0]?.id ?? '')}/refund`,
      { key: developer.developerKey, body: { amount: 1.5 } },
    );
    assert.equal(refund.status, 201);
    for (const rollsUp of [false, true]) {
      if (rollsUp) await rollUp(harness.database);
      const { earned, refunds, ...ends } = await ofDeveloper(developer, nameAt(0));
      assert.deepEqual([ends.openingEarnings, ends.closingEarnings], [2, 1.5]);
      assert.deepEqual(
        earned.map(({ tool, charges: count, amount }) => [tool, count, amount]),
        [['search', 1, 1]],
      );
      assert.deepEqual(
        refunds.map(({ tool, refunds: count, amount }) => [tool, count, amount]),
        [['search', 1, 1.5]],
      );
      assertAddsUp(await rowsOf(nameAt(0), developer.developerKey), 1_500_000);
    }
    const { movements, openingBalance, closingBalance } = await ofConsumer(consumer, nameAt(0));
    assert.deepEqual(
      movements.map(({ kind, amount }) => [kind, amount]),
      [['charge_refund', 1.5]],
    );
    assert.deepEqual([openingBalance, closingBalance], [3, 3.5]);
    assertAddsUp(await rowsOf(nameAt(0), consumer.consumerKey), 3_500_000);
  });

  it('is empty for a month before the sign-up', async () => {
    const account = await api.createAccount(10);
    const { movements, charges, openingBalance, closingBalance } = await ofConsumer(
      account,
      '1970-01',
    );
    assert.deepEqual([movements, charges, openingBalance, closingBalance], [[], [], 0, 0]);
    const { earned, closingEarnings } = await ofDeveloper(account, '1999-12');
    assert.deepEqual([earned, closingEarnings], [[], 0]);
  });

  it('shows nothing of others', async () => {
    const [owner, stranger] = [await api.createAccount(10), await api.createAccount(0)];
    await charge(api, owner, { tool: 'theirs' });
    const spent = await ofConsumer(stranger, nameAt(0));
    assert.deepEqual([spent.movements, spent.charges, spent.closingBalance], [[], [], 0]);
    assert.deepEqual((await ofDeveloper(stranger, nameAt(0))).earned, []);
  });

  it('names the current month when it refuses another', async () => {
    const { body } = await get('2026-13', (await api.createAccount(1)).consumerKey);
    const thisMonth = new Date().toISOString().slice(0, 7);
    const { message } = (body as { error: { message: string } }).error;
    assert.ok(message.includes(thisMonth), message);
  });

  for (const month of [
    nameAt(1),
    '9999-12',
    '1969-12',
    '2026-13',
    '2026-00',
    '2026-1',
    '2026',
    'x',
    '2026-11-01',
    '%00',
    '__proto__',
  ]) {
    it(`refuses the month ${month}`, async () => {
      const { consumerKey, developerKey } = await api.createAccount(1);
      for (const key of [consumerKey, developerKey]) {
        assertError(await get(month, key), 400, 'invalid_request', 'month');
        assertError(await get(`${month}.csv`, key), 400, 'invalid_request', 'month');
      }
    });
  }
});

function microsOf(dollars: number): number {
  return microsOfDollars(dollars) ?? assert.fail(`${dollars} is no amount`);
}

function sum(entries: readonly { readonly amount: number }[]): number {
  return entries.reduce((total, { amount }) => total + microsOf(amount), 0);
}

/** The rows of a statement, up to this closing figure. */
function assertAddsUp(rows: readonly string[][], closing: number): void {
  const amounts = rows.map((row) => BigInt((row.at(-1) ?? '').replace('.', '')));
  const last = amounts.pop();
  assert.equal(last, BigInt(closing));
  assert.equal(
    amounts.reduce((total, amount) => total + amount, 0n),
    last,
  );
  assert.equal(rows.at(-1)?.at(-1), decimalOf(asMicros(closing)));
}
