/** Numbers of budgets and spend keys are never free again: the holder of a key cannot use up those of the owner. */
import assert from 'node:assert/strict';
import { BUDGETS_MAX, SPEND_KEYS_MAX } from '../../../src/domain/budget.ts';
import { uuidOf } from '../../../src/domain/ids.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { askBudget, askKey, makeBudget, makeKey } from '../../support/budget-requests.ts';
import { assertError, call, type Answer } from '../../support/http.ts';
import { signIn } from '../../support/sessions.ts';

describe('the last numbers of an account', () => {
  let api: TestApi;
  let ofAccount: string;
  let headers: Readonly<Record<string, string>>;
  let root: string;
  let below: string;
  let delegate: string;

  before(async () => {
    api = await startTestApi();
  });
  after(() => api?.stop());

  beforeEach(async () => {
    const account = await api.createAccount(10);
    ofAccount = account.consumerKey;
    const cookie = await signIn(api, api.databaseUrl, account.email);
    headers = { cookie, origin: api.url };
    root = (await makeBudget(api, ofAccount, { mayDelegate: true })).id;
    delegate = (await makeKey(api, ofAccount, root)).key;
    below = (await makeBudget(api, delegate)).id;
  });

  const byOwner = (path: string, body: object): Promise<Answer> =>
    call(api, 'POST', path, { headers, body });

  const made = () => byOwner('/v1/budgets', { name: 'of the owner' });

  it('of budgets are kept from spend keys, and the very last ones from all keys', async () => {
    await numberBudget((await makeBudget(api, ofAccount)).id, BUDGETS_MAX / 2 - 1);
    assert.equal((await askBudget(api, delegate)).status, 201);
    assertError(await askBudget(api, delegate), 400, 'invalid_request');
    const last = await makeBudget(api, ofAccount);
    await numberBudget(last.id, (BUDGETS_MAX * 9) / 10);
    assertError(await askBudget(api, ofAccount), 400, 'invalid_request');
    assert.equal((await made()).status, 201);
    await numberBudget(last.id, BUDGETS_MAX);
    assertError(await made(), 400, 'invalid_request');
  });

  it('of spend keys are kept from spend keys, and the very last ones from all keys', async () => {
    const leaked = await makeKey(api, ofAccount, root);
    await numberKey(leaked.id, SPEND_KEYS_MAX / 2 - 1);
    const rolled = await makeKey(api, delegate, below);
    assertError(await askKey(api, delegate, below), 400, 'invalid_request');
    const roll = `/v1/keys/${rolled.id}/roll`;
    assertError(await call(api, 'POST', roll, { key: delegate, body: {} }), 400, 'invalid_request');
    assert.equal((await askKey(api, ofAccount, root)).status, 201);
    await numberKey(leaked.id, (SPEND_KEYS_MAX * 9) / 10);
    assertError(await askKey(api, ofAccount, root), 400, 'invalid_request');
    assert.equal((await byOwner(roll, {})).status, 201);
    await numberKey(leaked.id, SPEND_KEYS_MAX);
    const last = await byOwner(`/v1/budgets/${root}/keys`, { name: 'of the owner' });
    assertError(last, 400, 'invalid_request');
  });

  async function numberBudget(id: string, number: number): Promise<void> {
    await api.sql.query(
      `with node as (
        update farebox.budgets b set number = $2 from farebox.budget_details d
        where d.id = $1 and b.ledger = d.ledger and b.consumer_id = d.consumer_id and b.number = d.number
      )
      update farebox.budget_details set number = $2, path = array[$2::int] where id = $1`,
      [uuidOf('budget', id), number],
    );
  }

  async function numberKey(id: string, number: number): Promise<void> {
    await api.sql.query('update farebox.spend_keys set number = $2 where id = $1', [
      uuidOf('key', id),
      number,
    ]);
  }
});
