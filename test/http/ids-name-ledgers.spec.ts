/**
 * The id of everything that belongs to a consumer ends with the last four digits of the consumer's id, so it
 * says in which ledger the row is. Made here through the API and the functions of the store, one of each
 * kind, then read from every such table.
 */
import assert from 'node:assert/strict';
import { ledgerOf, uuidOf } from '../../src/domain/ids.ts';
import { asMicros } from '../../src/domain/money.ts';
import { TEST_LEDGER_MIN } from '../../src/domain/mode.ts';
import { createDatabase, type Database } from '../../src/store/database.ts';
import { rollUp } from '../../src/store/earnings/rollups.ts';
import { takeNotices } from '../../src/store/outbox.ts';
import { setAutoTopUp, takeUpAutoTopUp } from '../../src/store/top-ups/auto-top-ups.ts';
import { changeConsent } from '../../src/store/top-ups/monthly-ceiling.ts';
import { requestRefund } from '../../src/store/top-ups/request-refund.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { ask } from '../support/approval-requests.ts';
import { capture, place } from '../support/hold-requests.ts';
import { call, charge } from '../support/http.ts';
import { askRenewal, makeLeasable, settle, takeLease } from '../support/lease-requests.ts';
import { dispute, newPayer, processorId } from '../support/payer.ts';
import { testSideOf } from '../support/test-mode.ts';

const DOLLAR = 1_000_000;
/** Movements are found by their consumer, never by their id alone. Accounts say where their consumer is. */
const EXCEPTIONS = ['accounts', 'movements'];

interface Made {
  readonly table: string;
  readonly id: string;
  readonly consumer: string;
  readonly ledger: number;
}

describe('the ids of what belongs to a consumer', () => {
  let api: TestApi;
  let database: Database;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi();
    database = await createDatabase(api.databaseUrl, { maxPoolSize: 2, onError: () => {} });
    account = await api.createAccount(10);
  });
  after(async () => {
    await database.end();
    await api.stop();
  });

  async function readAll(): Promise<readonly Made[]> {
    const { rows: tables } = await api.sql.query<{ name: string }>(`
      select c.relname as name from pg_class c
      where c.relnamespace = 'farebox'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and (select count(*) from pg_attribute where attrelid = c.oid and attname in ('id', 'ledger', 'consumer_id')) = 3
      order by 1
    `);
    const names = tables.map(({ name }) => name).filter((name) => !EXCEPTIONS.includes(name));
    const each = names.map(
      (name) =>
        `select '${name}' as table, id, consumer_id as consumer, ledger from farebox.${name}`,
    );
    const { rows } = await api.sql.query<Made>(each.join(' union all '));
    const empty = names.filter((name) => !rows.some(({ table }) => table === name));
    assert.deepEqual(empty, []);
    return rows;
  }

  /** By table, how many rows say the ledger of the row that they are about, and how many another one. */
  async function readOthers(): Promise<Record<string, readonly [right: number, wrong: number]>> {
    await rollUp(database);
    const about = {
      consents: 'farebox.consents x join farebox.accounts y on y.id = x.account_id',
      events: `farebox.events x join farebox.top_ups y
        on farebox.wire_id('tu', y.id) in (x.data ->> 'id', x.data ->> 'topUpId')`,
      hold_expiries: 'farebox.hold_expiries x join farebox.holds y on y.id = any (x.holds)',
      hold_extensions: 'farebox.hold_extensions x join farebox.holds y on y.id = x.hold_id',
      outbox: 'farebox.outbox x join farebox.top_ups y on y.id = x.subject_id',
      top_up_earnings: 'farebox.top_up_earnings x join farebox.top_ups y on y.id = x.top_up_id',
    };
    const counts: Record<string, readonly [right: number, wrong: number]> = {};
    for (const [table, joined] of Object.entries(about)) {
      const { rows } = await api.sql.query<{ right: number; wrong: number }>(
        `select count(*) filter (where x.ledger = y.ledger)::int as right,
           count(*) filter (where x.ledger <> y.ledger)::int as wrong from ${joined}`,
      );
      counts[table] = [rows[0]?.right ?? 0, rows[0]?.wrong ?? 0];
    }
    return counts;
  }

  /** Top-ups of every method, a refund and a dispute. */
  async function topUp(): Promise<void> {
    const payer = await newPayer(database);
    const first = await payer.topUp(20 * DOLLAR);
    const refund = await requestRefund(database, first, asMicros(DOLLAR));
    assert.equal(refund.kind, 'requested');
    const second = await payer.topUp(20 * DOLLAR);
    await payer.report(second, dispute(processorId('dp'), 20 * DOLLAR));

    await changeConsent(database, payer.consumerId, {
      ceilingMicros: asMicros(1_000 * DOLLAR),
      givenBy: 'operator',
    });
    await setAutoTopUp(database, payer, {
      thresholdMicros: asMicros(10 * DOLLAR),
      amountMicros: asMicros(20 * DOLLAR),
      ceilingMicros: asMicros(100 * DOLLAR),
    });
    await api.sql.query(
      'select farebox.note_refusals(array[$1::int2], array[$2::uuid], array[1::int8])',
      [payer.ledger, payer.consumerId],
    );
    const notices = await takeNotices(database, 100, 60_000);
    const notice = notices.find(({ subjectId }) => subjectId === payer.consumerId);
    assert.ok(notice);
    await takeUpAutoTopUp(database, notice);
  }

  it('end like the id of the consumer, which names the ledger', async () => {
    const made = await charge(api, account);
    const { developerKey: key, consumerKey } = account;
    await call(api, 'POST', `/v1/charges/${(made.body as { id: string }).id}/refund`, {
      key,
      body: {},
    });
    await capture(api, account, (await place(api, account)).id);
    const { spendKey } = await makeLeasable(api, consumerKey);
    const lease = await takeLease(api, account, spendKey);
    await settle(api, account, lease.id, [{ sequence: 1 }, { sequence: 2 }]);
    const renewal = await askRenewal(api, account, lease.id, {}, { 'idempotency-key': 'renewed' });
    assert.equal(renewal.status, 200);
    await ask(api, account, consumerKey, 100);
    await testSideOf(api, api.databaseUrl, account, 5);
    await topUp();

    const rows = await readAll();
    for (const { table, id, consumer, ledger } of rows) {
      assert.equal(id.slice(-4), consumer.slice(-4), table);
      assert.equal(ledger % TEST_LEDGER_MIN, ledgerOf(id, 16), table);
    }
    const consumerId = uuidOf('consumer', account.consumerId);
    assert.ok(rows.filter(({ consumer }) => consumer === consumerId).length >= 9);
    assert.ok(rows.some(({ ledger }) => ledger >= TEST_LEDGER_MIN));
    const of = (name: string) => rows.filter(({ table }) => table === name).length;
    // The charge, the capture and two settled calls; manual, of test mode, two checkouts and an automatic one; a refund
    // and a dispute.
    assert.deepEqual([of('charges'), of('top_ups'), of('reversals')], [4, 5, 2]);
    for (const [table, [right, wrong]] of Object.entries(await readOthers()))
      assert.ok(right > 0 && wrong === 0, `${table}: ${right} right, ${wrong} wrong`);
  });
});
