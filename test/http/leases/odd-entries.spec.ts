/** Entries of a settlement that are malformed, or whose number is twice in it: each is decided on its own. */
import assert from 'node:assert/strict';
import { SettlementReply } from '../../../src/schemas/leases.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import { bodyOf, call } from '../../support/http.ts';
import { makeLeasable, settle, takeLease } from '../../support/lease-requests.ts';

describe('entries of a settlement', () => {
  const api = openTestApi();
  let account: TestAccount;
  let lease: string;

  beforeEach(async () => {
    account = await api.createAccount(10);
    const { spendKey } = await makeLeasable(api, account.consumerKey);
    lease = (await takeLease(api, account, spendKey, { amount: 0.1 })).id;
  });

  it('that cannot be read are refused, each alone', async () => {
    const wrong = [
      [{ sequence: 0 }, 'sequence'],
      [{ sequence: -3 }, 'sequence'],
      [{ sequence: 2 ** 31 }, 'sequence'],
      [{ sequence: '2' as never }, 'sequence'],
      [{ sequence: undefined as never }, 'sequence'],
      [{ sequence: 2, tool: '' }, 'tool'],
      [{ sequence: 2, metadata: { a: {} } }, 'metadata.a'],
      [{ sequence: 2, amount: -0.02 }, 'amount', 'invalid_amount'],
      [{ sequence: 2, amount: 0 }, 'amount', 'invalid_amount'],
      [{ sequence: 2, amount: 0.0000001 }, 'amount', 'invalid_amount'],
      [{ sequence: 2, amount: true as never }, 'amount', 'invalid_amount'],
    ] as const;
    const asked = [{ sequence: 1 }, ...wrong.map(([entry]) => entry), { sequence: 2 }];
    const { results, lease: after } = await settle(api, account, lease, asked);
    assert.deepEqual(statuses(results), [201, ...wrong.map(() => 400), 201]);
    assert.equal(after.settled, 0.04);
    for (const [n, [{ sequence }, param, code = 'invalid_request']] of wrong.entries()) {
      const result = results[n + 1];
      assert.ok(result && 'error' in result);
      assert.deepEqual([result.error.code, result.error.param], [code, param]);
      assert.equal(result.sequence, sequence === 2 ? 2 : undefined);
    }
  });

  it('that are no objects are refused, each alone', async () => {
    for (const entries of [[null], ['1'], [[]], [7]]) {
      const body = { entries: [...entries, { sequence: 1, tool: 'search', amount: 0.02 }] };
      const asked = { key: account.developerKey, body };
      const answer = await call(api, 'POST', `/v1/leases/${lease}/settle`, asked);
      const { results } = bodyOf(answer, 200, SettlementReply);
      assert.deepEqual(statuses(results), [400, 201]);
    }
  });

  it('twice in one request are charged once, and refused if they differ', async () => {
    const asked = [
      { sequence: 1 },
      { sequence: 1, amount: 0.01 },
      { sequence: 2, tool: 'other' },
      { sequence: 1 },
      { sequence: 2, tool: 'other' },
      { sequence: 1, metadata: { call: 1 } },
      { sequence: 3 },
    ];
    const { results, lease: after } = await settle(api, account, lease, asked);
    assert.deepEqual(statuses(results), [201, 422, 403, 201, 403, 422, 201]);
    assert.deepEqual(results[3], { ...results[0], replayed: true });
    assert.equal(after.settled, 0.04);
    const again = await settle(api, account, lease, asked);
    assert.deepEqual(statuses(again.results), [201, 422, 403, 201, 403, 422, 201]);
    assert.deepEqual(again.results[0], results[3]);
  });

  it('are refused if they differ from the first of their number, even if they were charged before', async () => {
    const charged = { sequence: 1, amount: 0.01 };
    await settle(api, account, lease, [charged]);
    const both = await settle(api, account, lease, [{ sequence: 1 }, charged]);
    assert.deepEqual(statuses(both.results), [422, 422]);
    const alone = await settle(api, account, lease, [charged]);
    assert.deepEqual(statuses(alone.results), [201]);
    assert.equal(alone.lease.settled, 0.01);
  });
});

function statuses(results: readonly { status: number }[]): number[] {
  return results.map(({ status }) => status);
}
