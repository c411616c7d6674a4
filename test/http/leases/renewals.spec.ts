/** Renewals of leases whose budget was changed meanwhile, in ways that only the database knows. */
import assert from 'node:assert/strict';
import { uuidOf } from '../../../src/domain/ids.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import { changeBudget } from '../../support/budget-requests.ts';
import { assertError } from '../../support/http.ts';
import { askRenewal, makeLeasable, takeLease } from '../../support/lease-requests.ts';

describe('a renewal of a lease', () => {
  const api = openTestApi();
  let account: TestAccount;

  before(async () => {
    account = await api.createAccount(10);
  });

  const taken = async (body: object) => {
    const { budgetId, spendKey } = await makeLeasable(api, account.consumerKey, { ...body });
    const { id } = await takeLease(api, account, spendKey);
    return { budgetId, id };
  };
  const refused = (id: string) =>
    api.changingNothing(() => askRenewal(api, account, id, { expiresIn: 600 }));

  for (const [was, before] of [
    ['no window', {}],
    ['one of another unit', { window: { per: 'month', limit: 4 } }],
  ] as const) {
    it(`is refused when its budget got a window, which has not counted it: ${was} before`, async () => {
      const { budgetId, id } = await taken(before);
      const window = { per: 'day', limit: 0.5 };
      await changeBudget(api, account.consumerKey, budgetId, { window });
      assertError(await refused(id), 409, 'lease_not_renewable');
    });
  }

  it('is refused once its budget is closed, also before this process has heard of that', async () => {
    const { budgetId, id } = await taken({});
    // Only in the row that nothing in memory follows.
    const close = (isClosed: boolean) =>
      api.sql.query(
        `update farebox.budgets b set is_closed = $2 from farebox.budget_details d
         where d.id = $1 and (b.ledger, b.consumer_id, b.number) = (d.ledger, d.consumer_id, d.number)`,
        [uuidOf('budget', budgetId), isClosed],
      );
    assert.equal((await close(true)).rowCount, 1);
    try {
      assertError(await refused(id), 401, 'invalid_api_key', 'apiKey');
    } finally {
      await close(false);
    }
  });
});
