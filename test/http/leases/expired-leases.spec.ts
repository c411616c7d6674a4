/** Leases that expire with money left: whom that is told, and how. */
import assert from 'node:assert/strict';
import type { Database } from '../../../src/store/database.ts';
import { expireHolds } from '../../../src/store/holds/expire-holds.ts';
import { openTestApi } from '../../support/api.ts';
import { keptPool } from '../../support/kept-pools.ts';
import {
  askLeaseRelease,
  endAllLeases,
  makeLeasable,
  settle,
  showLease,
  takeLease,
} from '../../support/lease-requests.ts';

describe('leases that expire', () => {
  const api = openTestApi();
  let database: Database;

  before(async () => {
    database = await keptPool(api.databaseUrl);
  });

  it('are told to their developer once, in the form of the API; those that ended before are not', async () => {
    const account = await api.createAccount(10);
    const { spendKey } = await makeLeasable(api, account.consumerKey, { limit: 9 });
    const take = () => takeLease(api, account, spendKey, { amount: 0.04 });
    const [lost, settled, released] = [await take(), await take(), await take()];
    await settle(api, account, lost.id, [{ sequence: 1 }]);
    await settle(api, account, settled.id, [{ sequence: 1 }, { sequence: 2 }]);
    assert.equal((await askLeaseRelease(api, account, released.id)).status, 200);
    await endAllLeases(api.sql);
    for (let sweep = 0; sweep < 2; sweep += 1) while ((await expireHolds(database)).holds > 0);
    const { rows } = await api.sql.query(
      `select e.data, a.developer_id from farebox.events e join farebox.accounts a on a.id = e.account_id
       where e.type in ('lease.expired', 'hold.expired')`,
    );
    const [{ data, developer_id: told }, ...others] = rows;
    assert.deepEqual(others, []);
    assert.equal(`dev_${told.replaceAll('-', '')}`, account.developerId);
    assert.deepEqual(data, await showLease(api, account.consumerKey, lost.id));
    assert.deepEqual([data.settled, data.released, data.status], [0.02, 0.02, 'expired']);
  });
});
