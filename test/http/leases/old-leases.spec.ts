/**
 * When calls of a lease that ended long ago are sent again, for example from a journal, the answer says what
 * was charged.
 */
import assert from 'node:assert/strict';
import { uuidFloor, uuidOf } from '../../../src/domain/ids.ts';
import { IDEMPOTENCY_RETENTION_MS } from '../../../src/charging/limits.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError } from '../../support/http.ts';
import {
  askSettle,
  endAllLeases,
  makeLeasable,
  settle,
  takeLease,
} from '../../support/lease-requests.ts';

const OLD_MS = Date.now() - IDEMPOTENCY_RETENTION_MS - 7 * 86_400_000;

describe('a lease that ended more than 62 days ago', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi();
  });
  after(async () => {
    await api?.stop();
  });

  it('still answers a repeated call with its charge', async () => {
    const { account, id, charge } = await settledLease();
    const { results, lease } = await settle(api, account, id, [{ sequence: 1 }, { sequence: 2 }]);
    const [again, late] = results;
    assert.ok(again && 'replayed' in again && again.replayed, JSON.stringify(again));
    assert.equal(again.id, `chg_${charge.replaceAll('-', '')}`);
    assert.equal(late?.status, 409);
    assert.equal(lease.settled, 0.02);
  });

  it('is not found once its charges are archived, since a call may be among them', async () => {
    const { account, id, charge } = await settledLease();
    const { sql } = api;
    await sql.query('delete from farebox.charges where id = $1', [charge]);
    const months = `insert into farebox.archived_months (month, charges, amount_micros) values ($1, 1, 20000)`;
    try {
      await sql.query(months, [`${new Date(OLD_MS).toISOString().slice(0, 7)}-01`]);
      const refused = await askSettle(api, account, id, [{ sequence: 1 }]);
      assertError(refused, 404, 'lease_not_found');
    } finally {
      await sql.query('delete from farebox.archived_months');
    }
  });

  /** With one call. */
  async function settledLease() {
    const account = await api.createAccount(10);
    const { spendKey } = await makeLeasable(api, account.consumerKey);
    const placed = uuidOf('lease', (await takeLease(api, account, spendKey)).id) ?? assert.fail();
    const leaseId = aged(placed, OLD_MS);
    await api.sql.query('update farebox.holds set id = $2 where id = $1', [placed, leaseId]);
    await api.sql.query('update farebox.leases set id = $2 where id = $1', [placed, leaseId]);
    const id = `lse_${leaseId.replaceAll('-', '')}`;
    const first = await settle(api, account, id, [{ sequence: 1 }]);
    const [made] = first.results;
    const uuid = made && 'id' in made ? (uuidOf('charge', made.id) ?? '') : assert.fail();
    const charge = aged(uuid, OLD_MS + 60_000);
    await api.sql.query('update farebox.charges set id = $2 where id = $1', [uuid, charge]);
    await endAllLeases(api.sql);
    return { account, id, charge };
  }
});

/** The same id with another time. */
function aged(uuid: string, timeMs: number): string {
  return uuidFloor(timeMs).slice(0, 13) + uuid.slice(13);
}
