/** Through which budget a key of an account pays a developer, as one process remembers it. */
import assert from 'node:assert/strict';
import { AccountKeyGuard } from '../../src/charging/account-key-guard.ts';
import { asMicros } from '../../src/domain/money.ts';
import { changeAccountKeys } from '../../src/store/accounts/account-keys.ts';
import { findKeyOwners, hashOfKey, type KeyOwner } from '../../src/store/accounts/api-keys.ts';
import { sql } from '../../src/store/database.ts';
import { createTestAccounts } from '../support/accounts.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';

describe('AccountKeyGuard', () => {
  let ledger: TestLedger;
  let guard: AccountKeyGuard;
  let key: KeyOwner;

  before(async () => {
    ledger = await openTestLedger(2);
    const [account] = await createTestAccounts(ledger.url, 1, 10);
    const [found] = await findKeyOwners(ledger.database, [hashOfKey(account?.consumerKey ?? '')]);
    assert.ok(found);
    guard = new AccountKeyGuard(ledger.database);
    key = found;
  });
  after(() => ledger?.drop());

  for (const known of ['except_blocked', 'by_developer'] as const) {
    it(`asks again after a look-up that failed, for a key with the guard ${known}`, async () => {
      const guarded: KeyOwner = { ...key, guard: known };
      await ledger.database.query(sql.typeAlias('nothing')`
        alter table farebox.spend_keys rename to away
      `);
      await assert.rejects(async () => guard.payerOf(guarded, key));
      await ledger.database.query(sql.typeAlias('nothing')`
        alter table farebox.away rename to spend_keys
      `);
      assert.deepEqual(await guard.payerOf(guarded, key), guarded);
    });
  }

  it('heeds a daily limit that was removed and set again', async () => {
    // As a process has the key that does not know yet that its owner removed the limit.
    const guarded: KeyOwner = { ...key, guard: 'by_developer' };
    assert.equal((await guard.payerOf(guarded, key))?.spend, null);
    await changeAccountKeys(ledger.database, key, { developerDayMicros: asMicros(1_000_000) });
    const payer = await guard.payerOf(guarded, key);
    assert.deepEqual([payer?.spend?.number, payer?.spend?.path], [1, [1]]);
  });
});
