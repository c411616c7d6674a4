/** Test accounts, which the first test key of an account makes. A page asks for two keys at once. */
import assert from 'node:assert/strict';
import { findAccount } from '../../../src/store/accounts/accounts.ts';
import { ensureTestAccount } from '../../../src/store/accounts/test-accounts.ts';
import { createTestAccounts } from '../../support/accounts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';

const ACCOUNTS = 50;
const AT_ONCE = 8;

describe('the test account of an account', () => {
  let ledger: TestLedger;

  before(async () => {
    ledger = await openTestLedger(AT_ONCE);
  });
  after(() => ledger?.drop());

  it('is the same one for all who ask for it first, at the same time', async () => {
    const { database } = ledger;
    for (const { email } of await createTestAccounts(ledger.url, ACCOUNTS, 0)) {
      const live = await findAccount(database, { email });
      assert.ok(live);
      const made = await Promise.all(
        Array.from({ length: AT_ONCE }, () => ensureTestAccount(database, live.id, 16)),
      );
      assert.equal(new Set(made.map(({ accountId }) => accountId)).size, 1);
    }
  });
});
