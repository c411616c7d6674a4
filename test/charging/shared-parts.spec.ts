/** Keys of one account in memory. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { SharedParts } from '../../src/charging/shared-parts.ts';
import type { KeyOwner } from '../../src/store/accounts/api-keys.ts';

function newAccount() {
  const [accountId, consumerId, developerId] = [randomUUID(), randomUUID(), randomUUID()];
  return { accountId, consumerId, developerId, ledger: 1, developerNumber: 7 };
}

function keyOf(account: ReturnType<typeof newAccount>, path: number[] | null): KeyOwner {
  return {
    ...account,
    keyId: randomUUID(),
    hash: randomUUID(),
    kind: path ? 'spend' : 'consumer',
    expiresAt: '2026-11-24T00:00:00Z',
    spend: path && { number: 3, path },
    guard: null,
  };
}

describe('owners of keys in memory', () => {
  it('are unchanged', () => {
    const shared = new SharedParts();
    const account = newAccount();
    for (const path of [null, [1], [1, 4], [1]]) {
      const owner = keyOf(account, path);
      assert.deepEqual(shared.of(owner), { ...owner, notedIn: 0 });
    }
  });

  it('share the path of a budget, and no path of another budget or account', () => {
    const shared = new SharedParts();
    const [one, other] = [newAccount(), newAccount()];
    const pathOf = (account: typeof one, path: number[]) =>
      shared.of(keyOf(account, path)).spend?.path;
    const path = pathOf(one, [1, 4]);
    assert.equal(pathOf(one, [1, 4]), path);
    for (const different of [pathOf(one, [1]), pathOf(one, [14]), pathOf(other, [1, 4])]) {
      assert.notEqual(different, path);
    }
  });
});
