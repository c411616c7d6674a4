/** Pages of leases with many tools, which are large. */
import assert from 'node:assert/strict';
import { LEASED_TOOLS_MAX } from '../../../src/domain/lease.ts';
import { LeasesReply } from '../../../src/schemas/leases.ts';
import { openTestApi } from '../../support/api.ts';
import { bodyOf, call } from '../../support/http.ts';
import { makeLeasable, takeLease } from '../../support/lease-requests.ts';

describe('leases of many tools', () => {
  const api = openTestApi();

  it('are listed in shorter pages', async () => {
    const account = await api.createAccount(10);
    const { consumerKey: key } = account;
    const { spendKey } = await makeLeasable(api, key);
    const tools = Array.from({ length: LEASED_TOOLS_MAX }, (_, n) => ({
      name: `${n}`.padStart(100, 'a tool '),
      price: 0.01,
    }));
    const taken: string[] = [];
    while (taken.length < 12) {
      taken.push((await takeLease(api, account, spendKey, { tools, amount: 0.1 })).id);
    }
    const page = async (query: string) =>
      bodyOf(await call(api, 'GET', `/v1/leases?limit=100${query}`, { key }), 200, LeasesReply);
    const first = await page('');
    const { length } = first.leases;
    assert.ok(length > 1 && length < taken.length, `${length} leases`);
    const second = await page(`&cursor=${first.nextCursor}`);
    assert.deepEqual([first.hasMore, second.hasMore, second.nextCursor], [true, false, null]);
    const ids = [...first.leases, ...second.leases].map(({ id }) => id);
    assert.deepEqual(ids, taken.toReversed());
  });
});
