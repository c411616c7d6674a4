/**
 * An archive moves the holds and leases of the months before it out of the ledger, and doctor finds nothing before and
 * after. Those of the archived month stay, for the charges of the next month that captured them.
 */
import assert from 'node:assert/strict';
import { uuidFloor, uuidOf, type IdKind } from '../../../src/domain/ids.ts';
import { DeveloperChargeReply } from '../../../src/schemas/charges.ts';
import { HoldsReply } from '../../../src/schemas/holds.ts';
import { LeasesReply } from '../../../src/schemas/leases.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { archiveMonth } from '../../../src/store/charges/archive-month.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { rebuildRollups, rollUp } from '../../../src/store/earnings/rollups.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { showBudget } from '../../support/budget-requests.ts';
import { openEarningsHarness, type EarningsHarness } from '../../support/earnings-harness.ts';
import { askCapture, askExtension, askRelease, keyed } from '../../support/hold-requests.ts';
import { capture, place, release, show } from '../../support/hold-requests.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';
import {
  askRenewal,
  makeLeasable,
  settle,
  showLease,
  takeLease,
} from '../../support/lease-requests.ts';
import { farebox, until } from '../../support/stack.ts';

const NOW = new Date();
const monthAt = (ahead: number): number =>
  Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() + ahead);
const nameAt = (ahead: number): string => new Date(monthAt(ahead)).toISOString().slice(0, 7);
const tableAt = (table: string, ahead: number): string =>
  `${table}_${nameAt(ahead).replace('-', '_')}`;
/** An earlier release archived its charges, and left its holds. */
const LEFT = -8;
const OLD = -7;
const NEXT = -6;

describe('the holds of the months before an archived one', () => {
  let api: TestApi;
  let harness: EarningsHarness;
  let account: TestAccount;
  let spender: TestAccount;
  let budgetId: string;
  /** The ids of what was moved to the past, by the name that it has here. */
  const ids: Record<string, string> = {};

  before(async () => {
    api = await startTestApi();
    harness = await openEarningsHarness(api.databaseUrl);
    for (const month of [LEFT, NEXT]) {
      await ensureChargePartitions(api.databaseUrl, monthAt(month));
    }
    account = await api.createAccount(100);
    const leasable = await makeLeasable(api, account.consumerKey, {
      window: { per: 'month', limit: 50 },
    });
    ({ budgetId } = leasable);
    spender = { ...account, consumerKey: leasable.spendKey };
    const left = tableAt('charges', LEFT);
    await api.sql.query(`alter table farebox.charges detach partition farebox.${left}`);
    await api.sql.query(`alter table farebox.${left} set schema farebox_archive`);
    await makeThePast();
  });
  after(async () => {
    await harness?.close();
    await api?.stop();
  });

  async function makeThePast(): Promise<void> {
    const left = await place(api, spender);
    await release(api, account, left.id);
    const captured = await place(api, spender, { amount: 2 });
    const capturedBy = await capture(api, account, captured.id, { amount: 0.5 });
    const released = await place(api, account);
    await release(api, account, released.id);
    const lease = await takeLease(api, account, spender.consumerKey);
    await askRenewal(api, account, lease.id, { expiresIn: 600 }, keyed('renewal'));
    const settledBy = await settleOne(lease.id);
    const ahead = await place(api, account);
    const aheadBy = await capture(api, account, ahead.id);
    const late = await place(api, spender, { amount: 3 });
    const over = await place(api, spender, { amount: 1 });
    const lateBy = await capture(api, account, late.id);
    const overBy = await capture(api, account, over.id, { amount: 4, over: 'overflow' });
    const lateLease = await takeLease(api, account, spender.consumerKey);
    const lateSettledBy = await settleOne(lateLease.id);
    const next = await place(api, spender);
    const nextBy = await capture(api, account, next.id);
    while ((await rollUp(harness.database)).hasMore);

    const midnight = monthAt(NEXT);
    await moved('left', 'hold', left.id, monthAt(LEFT));
    await moved('captured', 'hold', captured.id, monthAt(OLD));
    await moved('capturedBy', 'charge', capturedBy.id, monthAt(OLD) + 10);
    await moved('released', 'hold', released.id, monthAt(OLD) + 1_000);
    await moved('lease', 'lease', lease.id, monthAt(OLD) + 2_000);
    await moved('settledBy', 'charge', settledBy, monthAt(OLD) + 3_000);
    await moved('late', 'hold', late.id, midnight - 60_000);
    await moved('over', 'hold', over.id, midnight - 50_000);
    await moved('lateBy', 'charge', lateBy.id, midnight + 60_000);
    await moved('overBy', 'charge', overBy.id, midnight + 70_000);
    await moved('lateLease', 'lease', lateLease.id, midnight - 40_000);
    await moved('lateSettledBy', 'charge', lateSettledBy, midnight + 75_000);
    // The clock was set back over the end of the month after it was placed.
    await moved('ahead', 'hold', ahead.id, midnight + 1_800_000);
    await moved('aheadBy', 'charge', aheadBy.id, midnight - 70_000);
    await moved('next', 'hold', next.id, midnight + 80_000);
    await moved('nextBy', 'charge', nextBy.id, midnight + 90_000);
    // The window began with the last month in which something was charged: it counted the excess, and the last hold.
    await api.sql.query(
      `update farebox.budgets set window_began = $1, window_used_micros = 4000000,
         window_from_micros = (select spent_micros - amount_micros from farebox.charges where id = $2)`,
      [new Date(midnight).toISOString(), uuidOf('charge', id('lateBy'))],
    );
    await rebuildRollups(harness.database);
  }

  /** Settles a call of $0.02, and releases the rest. Returns the id of the charge. */
  async function settleOne(leaseId: string): Promise<string> {
    const { results } = await settle(api, account, leaseId, [{ sequence: 1 }], { final: true });
    const [entry] = results;
    return entry && 'id' in entry ? entry.id : assert.fail();
  }

  /** Gives the row another time, and so another month. */
  async function moved(name: string, kind: IdKind, id: string, timeMs: number): Promise<string> {
    const before = uuidOf(kind, id) ?? assert.fail();
    const after = uuidFloor(timeMs).slice(0, 13) + before.slice(13);
    const values = [before, after];
    if (kind === 'charge') {
      await api.sql.query('update farebox.charges set id = $2 where id = $1', values);
      await api.sql.query(
        'update farebox.holds set overflow_charge = $2 where overflow_charge = $1',
        values,
      );
    } else {
      await api.sql.query(
        `update farebox.holds set id = $2, placed_at = $3,
           expires_at = case state when 0 then expires_at else $3::timestamptz + interval '1 hour' end
         where id = $1`,
        [...values, new Date(timeMs).toISOString()],
      );
      await api.sql.query('update farebox.leases set id = $2 where id = $1', values);
      await api.sql.query(
        'update farebox.hold_extensions set hold_id = $2 where hold_id = $1',
        values,
      );
      await api.sql.query(
        'update farebox.hold_expiries set holds = array_replace(holds, $1, $2)',
        values,
      );
      await api.sql.query(
        `update farebox.charges set origin = substr(origin, 1, 6) || uuid_send($2::uuid)
         where length(origin) = 22 and substr(origin, 7) = uuid_send($1::uuid)`,
        values,
      );
    }
    const wire = id.slice(0, 4) + after.replaceAll('-', '');
    ids[name] = wire;
    return wire;
  }

  const id = (name: string): string => ids[name] ?? assert.fail(name);
  const archive = (month: number) => archiveMonth(harness.database, nameAt(month), Date.now());
  const refund = (charge: string, amount: number) =>
    call(api, 'POST', `/v1/charges/${charge}/refund`, {
      key: account.developerKey,
      body: { amount },
    });
  const used = async () => (await showBudget(api, account.consumerKey, budgetId)).used;
  const count = async (table: string): Promise<number> => {
    const { rows } = await api.sql.query<{ n: number }>(`select count(*)::int as n from ${table}`);
    return rows[0]?.n ?? assert.fail();
  };

  it('are moved for every earlier month, while holds of the archived month stay', async () => {
    assert.deepEqual(await examineLedger(harness.database), []);
    const left = `farebox_archive.${tableAt('holds', LEFT)}`;
    assert.match(
      await farebox(['archive', '--month', nameAt(OLD)], { env: api.env }),
      new RegExp(
        `Archived 3 charges of [^]*\\nThe holds and leases of earlier months are now in ${left}\\.\\n`,
      ),
    );
    assert.equal(await count(left), 1);
    assert.deepEqual(await examineLedger(harness.database), []);
    assert.equal((await show(api, account, id('captured'))).status, 'captured');
  });

  it('stay for the charges of a later month, which show them and can be refunded', async () => {
    for (const [name, of] of [
      ['lateBy', { holdId: id('late'), leaseId: undefined }],
      ['lateSettledBy', { holdId: undefined, leaseId: id('lateLease') }],
    ] as const) {
      const answer = await call(api, 'GET', `/v1/charges/${id(name)}`, {
        key: account.developerKey,
      });
      const { holdId, leaseId } = bodyOf(answer, 200, DeveloperChargeReply);
      assert.deepEqual({ holdId, leaseId }, of);
    }
    assert.equal(await used(), 8.54);
    assert.equal((await refund(id('lateBy'), 3)).status, 201);
    assert.equal((await refund(id('overBy'), 4)).status, 201);
    assert.equal(await used(), 1.54);
    assert.deepEqual(await examineLedger(harness.database), []);
  });

  it('keep a month from being archived while one of them is open', async () => {
    const open = await place(api, account);
    const past = await moved('open', 'hold', open.id, monthAt(OLD) + 5_000);
    assert.deepEqual(await archive(NEXT), { kind: 'unsettled', what: 'open_holds' });
    await assert.rejects(
      farebox(['archive', '--month', nameAt(NEXT)], { env: api.env }),
      /Some holds from before .* are still open\. Is a worker running\?/,
    );
    await release(api, account, past);
  });

  it('keep a month from being archived while one of them has no partition', async () => {
    const past = id('open');
    await moved('misplaced', 'hold', past, Date.UTC(2001, 1));
    assert.deepEqual(await archive(NEXT), { kind: 'unsettled', what: 'holds_rest' });
    await moved('open', 'hold', id('misplaced'), monthAt(OLD) + 5_000);
  });

  it('wait for what reads holds, and are moved with their leases', async () => {
    await api.sql.query('begin');
    await api.sql.query('select from farebox.holds limit 1');
    const archiving = archive(NEXT);
    const waits = `select from pg_stat_activity where datname = current_database()
      and wait_event_type = 'Lock' and query like '%detach partition%'`;
    await until(async () => (await harness.client.query(waits)).rowCount === 1);
    await api.sql.query('rollback');
    const archived = await archiving;
    assert.ok(archived.kind === 'archived', archived.kind);
    assert.deepEqual(archived.holdTables, [
      `farebox_archive.${tableAt('holds', OLD)}`,
      `farebox_archive.${tableAt('leases', OLD)}`,
    ]);
    const counts: number[] = [];
    for (const table of archived.holdTables) counts.push(await count(table));
    assert.deepEqual(counts, [7, 2]);
    assert.equal(await count('farebox.hold_extensions'), 0);
    assert.deepEqual(await examineLedger(harness.database), []);
  });

  it('do not exist for requests any more', async () => {
    const ofDeveloper = { key: account.developerKey };
    for (const key of [account.developerKey, account.consumerKey]) {
      const answer = await call(api, 'GET', `/v1/holds/${id('captured')}`, { key });
      assertError(answer, 404, 'hold_not_found');
      assertError(
        await call(api, 'GET', `/v1/leases/${id('lease')}`, { key }),
        404,
        'lease_not_found',
      );
    }
    for (const answer of [
      await askCapture(api, account, id('captured')),
      await askExtension(api, account, id('captured'), 600),
      await askRelease(api, account, id('released')),
    ]) {
      assertError(answer, 404, 'hold_not_found');
    }
    const { holds } = bodyOf(await call(api, 'GET', '/v1/holds', ofDeveloper), 200, HoldsReply);
    assert.deepEqual(
      holds.map((hold) => hold.id),
      [id('ahead'), id('next')],
    );
    const { leases } = bodyOf(await call(api, 'GET', '/v1/leases', ofDeveloper), 200, LeasesReply);
    assert.deepEqual(leases, []);
  });

  it('leave holds and leases to work as before', async () => {
    const open = await place(api, spender);
    await capture(api, account, open.id);
    const lease = await takeLease(api, account, spender.consumerKey);
    await settle(api, account, lease.id, [{ sequence: 1 }], { final: true });
    assert.equal((await showLease(api, account.developerKey, lease.id)).status, 'released');
    while ((await rollUp(harness.database)).hasMore);
    assert.deepEqual(await examineLedger(harness.database), []);
  });
});
