/**
 * An archived month: its charges are out of the ledger, and statements, totals, earnings and doctor work as before.
 * A request for one of its charges gets an error that says so.
 */
import assert from 'node:assert/strict';
import { uuidFloor, wireId } from '../../../src/domain/ids.ts';
import { UsageReply } from '../../../src/schemas/balance.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { findKeyOwners, hashOfKey } from '../../../src/store/accounts/api-keys.ts';
import { exportCharges } from '../../../src/http/handlers/charges/charge-files.ts';
import type { Api } from '../../../src/http/services.ts';
import { archiveMonth } from '../../../src/store/charges/archive-month.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { rebuildRollups, rollUp } from '../../../src/store/earnings/rollups.ts';
import { proveBooks } from '../../support/books.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import {
  openEarningsHarness,
  type EarningsHarness,
  type Party,
} from '../../support/earnings-harness.ts';
import { makeBudget, makeKey } from '../../support/budget-requests.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';
import { farebox, until } from '../../support/stack.ts';

const NOW = new Date();
const monthAt = (ahead: number): number =>
  Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() + ahead);
const nameAt = (ahead: number): string => new Date(monthAt(ahead)).toISOString().slice(0, 7);
const isoAt = (ahead: number): string => new Date(monthAt(ahead)).toISOString();
/** Months that are over for long enough, and the one after them. */
const OLDEST = -7;
const OLD = -6;
const LATER = -5;

describe('an archived month', () => {
  let api: TestApi;
  let harness: EarningsHarness;
  let consumer: Party;
  let developer: Party;
  let chargeId: string;
  let receipt: string;
  let budgetId: string;
  let live: Readonly<Record<string, unknown>>;

  before(async () => {
    api = await startTestApi();
    harness = await openEarningsHarness(api.databaseUrl);
    for (const month of [OLDEST, LATER]) {
      await ensureChargePartitions(api.databaseUrl, monthAt(month));
    }
    [consumer, developer] = (await harness.parties(2)) as [Party, Party];
    await harness.topUp(consumer, 3_000_000);
    await harness.topUp(consumer, 90_000_000);
    const at = (timeMs: number, amount: number, tool = 'search') =>
      harness.charge([{ consumer, developer, amount, tool, timeMs }]);
    await at(monthAt(OLDEST), 1_000_000);
    await at(monthAt(OLD) - 60_000, 1_500_000, 'fetch');
    // A charge of the next month overtakes one that was begun in the last second of this one.
    await at(monthAt(OLD) + 1, 2_000_000);
    await at(monthAt(OLD) - 1, 2_500_000);
    await at(monthAt(OLD) + 3 * 86_400_000, 3_000_000);
    await at(monthAt(LATER) + 5, 4_000_000);
    await at(monthAt(LATER) - 5, 4_500_000);
    await at(Date.now(), 5_000_000);
    // As many as the first page of an export has.
    const many = { consumer, developer, amount: 1, tool: 'many', timeMs: Date.now() };
    await harness.charge(Array.from({ length: 500 }, () => many));
    const oldest = await api.sql.query<{ id: string }>(
      `select id from farebox.charges where amount_micros = 1000000`,
    );
    chargeId = wireId('charge', (oldest.rows[0] ?? assert.fail()).id);
    await chargedByASpendKey();
    const shown = await call(api, 'GET', `/v1/charges/${chargeId}`, {
      key: developer.developerKey,
    });
    receipt = (shown.body as { receipt: string }).receipt;
    await refund(chargeId, 0.25);
    await movementsHappenedAt(monthAt(OLDEST));
    while ((await rollUp(harness.database)).hasMore);
    live = await figures();
  });
  after(async () => {
    await harness?.close();
    await api?.stop();
  });

  const refund = (id: string, amount: number) =>
    call(api, 'POST', `/v1/charges/${id}/refund`, {
      key: developer.developerKey,
      body: { amount },
    });

  /** As if a spend key had made the oldest charge, and the one that is refunded while its month is archived. */
  async function chargedByASpendKey(): Promise<void> {
    const budget = await makeBudget(api, consumer.consumerKey, { limit: 9 });
    await makeKey(api, consumer.consumerKey, budget.id);
    await api.sql.query(`
      update farebox.charges set origin = int4send(1) where amount_micros in (1000000, 4000000)
    `);
    await api.sql.query('update farebox.budgets set used_micros = 5000000');
    await rebuildRollups(harness.database);
    budgetId = budget.id;
  }

  /** All but the credit of the refund, which is of today. Their ids say so too. */
  async function movementsHappenedAt(timeMs: number): Promise<void> {
    await api.sql.query(
      `with moved as (
         update farebox.movements set created_at = $1, id = uuidv7($1::timestamptz - now())
         where kind <> 'charge_refund'
         returning old.id as before, new.id as after
       )
       update farebox.lots set movement_id = after from moved where movement_id = before`,
      [new Date(timeMs).toISOString()],
    );
  }

  const archive = (month: number) => archiveMonth(harness.database, nameAt(month), Date.now());

  async function read(path: string, by: { readonly key: string }): Promise<unknown> {
    const { status, body } = await call(api, 'GET', path, by);
    assert.equal(status, 200, path);
    return body;
  }

  /** Everything that reads without naming a single old charge. */
  async function figures(): Promise<Record<string, unknown>> {
    const ofConsumer = { key: consumer.consumerKey };
    const ofDeveloper = { key: developer.developerKey };
    const totalOf = async (query: string) =>
      ((await read(`/v1/usage?limit=1&${query}`, ofConsumer)) as { total: number }).total;
    return {
      balance: await read('/v1/balance', ofConsumer),
      usageOfBudget: await Promise.all(
        ['', '?by=day', `?to=${nameAt(OLD)}-01`].map((query) =>
          read(`/v1/budgets/${budgetId}/usage${query}`, ofConsumer),
        ),
      ),
      total: await totalOf(''),
      totalOfTool: await totalOf('tool=search'),
      totalSince: await totalOf(`from=${isoAt(LATER)}`),
      totalUntil: await totalOf(`to=${isoAt(LATER)}`),
      statements: await statementsOf(ofConsumer),
      developerStatements: await statementsOf(ofDeveloper),
      earnings: await read('/v1/earnings', ofDeveloper),
      topUps: await read('/v1/top-ups', ofDeveloper),
    };
  }

  /** One after the other: on a busy machine, an account may not have so many reads at once. */
  async function statementsOf(by: { readonly key: string }): Promise<unknown[]> {
    const statements = [];
    for (const month of [OLDEST, OLD, LATER, 0]) {
      statements.push(await read(`/v1/statements/${nameAt(month)}`, by));
    }
    return statements;
  }

  /** An export whose first page is read, so that the client has the beginning of the file. */
  async function beginExport(query: object): Promise<AsyncIterator<unknown>> {
    const [caller] = await findKeyOwners(harness.database, [hashOfKey(developer.developerKey)]);
    const request = { caller: caller ?? assert.fail(), query } as Parameters<
      typeof exportCharges
    >[1];
    const { pages } = exportCharges({ database: harness.database } as Api, request);
    const iterator = pages[Symbol.asyncIterator]();
    assert.equal((await iterator.next()).done, false);
    return iterator;
  }

  it('has to be over for 101 days', async () => {
    const result = await archive(-1);
    assert.equal(result.kind, 'not_closed');
  });

  it('comes after all older months', async () => {
    assert.deepEqual(await archive(OLD), { kind: 'not_next', next: nameAt(OLDEST) });
  });

  it('waits until its earnings are rolled up', async () => {
    await api.sql.query(
      `insert into farebox.earnings_tail values (0, 1, $1, 'search', 1, 1), (0, 1, $1, 'search', -1, -1)`,
      [isoAt(OLDEST)],
    );
    assert.deepEqual(await archive(OLDEST), { kind: 'unsettled', what: 'earnings_tail' });
    await api.sql.query(`delete from farebox.earnings_tail`);
    await api.sql.query(
      `insert into farebox.key_spending_tail
         (ledger, ledgers, consumers, charge_group, spend_keys, developers, tools, days, amounts)
       values (0, '{0}', '{null}', '{1,1}', '{1,1}', '{1,1}', '{search,search}',
         array[now()::date, $1::timestamptz::date], '{1,1}')`,
      [isoAt(OLDEST)],
    );
    assert.deepEqual(await archive(OLDEST), { kind: 'unsettled', what: 'earnings_tail' });
    await api.sql.query(`delete from farebox.key_spending_tail`);
  });

  it('leaves every figure as it was, and nothing off', async () => {
    assert.match(
      await farebox(['archive', '--month', nameAt(OLDEST)], { env: api.env }),
      /Archived 3 charges of .*, \$5\.00 in total\. They are now in farebox_archive\.charges_/,
    );
    assert.deepEqual(await figures(), live);
    assert.equal((await archive(OLD)).kind, 'archived');
    assert.deepEqual(await figures(), live);
    await proveBooks(api.env, { processor: false });
    await rebuildRollups(harness.database);
    assert.deepEqual(await figures(), live);
    assert.deepEqual(await examineLedger(harness.database), []);
    assert.deepEqual(await archive(OLD), { kind: 'not_next', next: nameAt(LATER) });
  });

  for (const [what, table, change, undo, check] of [
    [
      'a sum that was changed',
      'archived_charges',
      'amount_micros = amount_micros + 1',
      'amount_micros = amount_micros - 1',
      'spent is the sum of charges',
    ],
    [
      'a number of charges that was changed',
      'archived_charges',
      'charges = charges + 1',
      'charges = charges - 1',
      'archived charges have the same sums wherever they are kept',
    ],
    [
      'a tool that was changed',
      'archived_charges',
      `tool = tool || '!'`,
      `tool = rtrim(tool, '!')`,
      'the earnings of archived months equal their charges',
    ],
    [
      'a stretch that was moved',
      'archived_spending',
      `stretches = stretches - '{[0,1)}' + '{[99999999,100000000)}'`,
      `stretches = stretches + '{[0,1)}' - '{[99999999,100000000)}'`,
      'charges follow each other without gap or overlap',
    ],
    [
      'a payment that was changed',
      'archived_attribution',
      'micros = micros + 1',
      'micros = micros - 1',
      'the top-up attribution and its tail equal what charges took from lots',
    ],
    [
      'an amount of a spend key that was changed',
      'archived_key_spending',
      'micros = micros + 1',
      'micros = micros - 1',
      'a budget used what its keys charged, less refunds, and what their holds reserve',
    ],
    [
      'what a spend key spent in all that was changed',
      'key_spending',
      'amount_micros = amount_micros + 1',
      'amount_micros = amount_micros - 1',
      'the total spending of a key and its tail equal what it charged, less refunds',
    ],
    [
      'a month that was changed',
      'archived_months',
      'charges = charges - 1',
      'charges = charges + 1',
      'archived charges have the same sums wherever they are kept',
    ],
  ] as const) {
    it(`lets doctor report ${what}`, async () => {
      await api.sql.query(`update farebox.${table} set ${change}`);
      const findings = await examineLedger(harness.database, {
        parts: ['budgets', 'charges', 'earnings'],
      });
      await api.sql.query(`update farebox.${table} set ${undo}`);
      assert.ok(
        findings.some((found) => found.check === check),
        JSON.stringify(findings.map((found) => found.check)),
      );
      assert.deepEqual(await examineLedger(harness.database), []);
    });
  }

  it('keeps its charges in a table of its own', async () => {
    const { rows } = await api.sql.query<{ amount: number }>(
      `select amount_micros::int as amount from farebox_archive.charges_${nameAt(OLDEST).replace('-', '_')} order by 1`,
    );
    assert.deepEqual(
      rows.map(({ amount }) => amount),
      [1_000_000, 1_500_000, 2_500_000],
    );
  });

  it('refuses to list, show, refund or verify a single one of its charges', async () => {
    const ofConsumer = { key: consumer.consumerKey };
    const ofDeveloper = { key: developer.developerKey };
    const from = isoAt(OLD);
    for (const path of [
      `/v1/usage?from=${from}`,
      `/v1/usage?to=${from}`,
      `/v1/usage.csv?from=${from}`,
    ]) {
      assertError(await call(api, 'GET', path, ofConsumer), 410, 'charges_archived');
    }
    for (const path of [
      `/v1/charges?from=${from}`,
      `/v1/charges.csv?from=${from}`,
      `/v1/charges/${chargeId}`,
    ]) {
      assertError(await call(api, 'GET', path, ofDeveloper), 410, 'charges_archived');
    }
    assertError(await refund(chargeId, 0.1), 410, 'charges_archived');
    for (const path of ['/v1/receipts/verify', '/v1/receipts/public']) {
      const answer = await call(api, 'POST', path, { ...ofDeveloper, body: { receipt } });
      assertError(answer, 410, 'charges_archived');
    }
    const unknown = wireId('charge', uuidFloor(Date.now()));
    assertError(await call(api, 'GET', `/v1/charges/${unknown}`, ofDeveloper), 404, 'not_found');
  });

  it('ends a list that has no bounds', async () => {
    const path = '/v1/usage?tool=search';
    const answer = await call(api, 'GET', path, { key: consumer.consumerKey });
    const { charges, hasMore } = bodyOf(answer, 200, UsageReply);
    assert.deepEqual(
      charges.map(({ amount }) => amount),
      [5, 4],
    );
    assert.equal(hasMore, false);
  });

  it('waits for what reads charges, tries again, and misses no refund that is made meanwhile', async () => {
    const { rows } = await api.sql.query<{ id: string }>(
      'select id from farebox.charges where amount_micros = 4000000',
    );
    const lateId = wireId('charge', (rows[0] ?? assert.fail()).id);
    await api.sql.query('begin');
    await api.sql.query('select from farebox.charges limit 1');
    const archiving = archive(LATER);
    const waits = `select from pg_stat_activity where datname = current_database()
      and wait_event_type = 'Lock' and query like '%detach partition%'`;
    await until(async () => (await harness.client.query(waits)).rowCount === 1);
    await until(async () => (await harness.client.query(waits)).rowCount === 0);
    // The sums of the month are made by now, and its charges are not gone yet.
    assert.equal((await refund(lateId, 0.75)).status, 201);
    const open = await Promise.all(
      [{}, { from: isoAt(LATER) }, { from: isoAt(0) }].map((query) => beginExport(query)),
    );
    await api.sql.query('rollback');
    assert.equal((await archiving).kind, 'archived');
    const ends = await Promise.allSettled(open.map((pages) => pages.next()));
    assert.deepEqual(
      ends.map((end) => (end.status === 'rejected' ? String(end.reason.code) : end.value.done)),
      ['charges_archived', 'charges_archived', false],
    );
    assertError(await refund(lateId, 0.1), 410, 'charges_archived');
    assert.deepEqual(await examineLedger(harness.database), []);
  });
});
