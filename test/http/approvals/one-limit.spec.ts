/** What a one-time approval lets pass: the limit that its owner was asked about, and no other one of the budget. */
import assert from 'node:assert/strict';
import { openTestApi } from '../../support/api.ts';
import { ask, decide, showApproval, untilDecided } from '../../support/approval-requests.ts';
import { makeBudget, makeKey, showBudget, spend } from '../../support/budget-requests.ts';
import { until } from '../../support/stack.ts';

const CASES = [
  [{ maxPerCall: 1, limit: 1.5 }, 'per_call', 'total'],
  [{ maxPerCall: 1, window: { per: 'month', limit: 1.5 } }, 'per_call', 'window'],
  [{ limit: 1, window: { per: 'month', limit: 1.5 } }, 'total', 'window'],
] as const;

describe('an approval for once', () => {
  const api = openTestApi();

  for (const [settings, asked, other] of CASES) {
    it(`for the ${asked} limit does not lift the ${other} limit, which needs a request of its own`, async () => {
      const account = await api.createAccount(100);
      const key = account.consumerKey;
      const { id } = await makeBudget(api, key, settings);
      const { key: spendKey } = await makeKey(api, key, id);
      const pay = () => spend(api, account, spendKey, 2);
      const first = await ask(api, account, spendKey, 2);
      assert.equal(first.scope, asked);
      await decide(api, key, first.id, 'once');
      await untilDecided(api, spendKey, first.id);
      const refused = await pay();
      const { scope } = (refused.body as { error: { scope?: string } }).error;
      assert.deepEqual([refused.status, scope], [402, other]);
      assert.equal((await showApproval(api, key, first.id)).used, false);
      assert.equal((await showBudget(api, key, id)).used, 0);
      const second = await ask(api, account, spendKey, 2);
      assert.equal(second.scope, other);
      await decide(api, key, second.id, 'once');
      await until(async () => (await pay()).status === 201);
      for (const approval of [first, second]) {
        assert.equal((await showApproval(api, key, approval.id)).used, true);
      }
      assert.equal((await showBudget(api, key, id)).used, 2);
      assert.equal((await pay()).status, 402);
    });
  }
});
