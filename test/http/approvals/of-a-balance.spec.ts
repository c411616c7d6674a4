/** An approval that a balance too small for the call has led to. */
import assert from 'node:assert/strict';
import { openTestApi } from '../../support/api.ts';
import { ask, tryDecide, untilDecided } from '../../support/approval-requests.ts';
import { makeBudget, makeKey, spend } from '../../support/budget-requests.ts';
import { assertError } from '../../support/http.ts';
import { farebox } from '../../support/stack.ts';

describe('an approval of a balance', () => {
  const api = openTestApi();

  it('ends when the balance covers the call', async () => {
    const account = await api.createAccount(100);
    const key = account.consumerKey;
    const { id } = await makeBudget(api, key);
    const { key: spendKey } = await makeKey(api, key, id);
    const asked = await ask(api, account, spendKey, 150);
    assert.deepEqual([asked.code, asked.budgetId], ['insufficient_balance', null]);
    const wrong = await tryDecide(api, key, asked.id, { decision: 'once' });
    assertError(wrong, 400, 'invalid_request', 'decision');
    const waiting = untilDecided(api, spendKey, asked.id);
    await farebox(['account', 'adjust', account.email, '50', '--reason', 'a test'], api);
    assert.equal((await waiting).decision, 'top_up');
    assert.equal((await spend(api, account, spendKey, 150)).status, 201);
  });
});
