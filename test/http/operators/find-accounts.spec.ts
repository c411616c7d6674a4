/** Operators find accounts by the ids that customers and the audit log name. */
import assert from 'node:assert/strict';
import { uuidOf, wireId } from '../../../src/domain/ids.ts';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import { AccountsReply, OperatorChargeReply } from '../../../src/schemas/operators.ts';
import { openTestApi } from '../../support/api.ts';
import { makeBudget, makeKey } from '../../support/budget-requests.ts';
import { bodyOf, call, charge } from '../../support/http.ts';
import { makeOperator, signIn } from '../../support/sessions.ts';
import { testSideOf } from '../../support/test-mode.ts';

describe('an operator', () => {
  const api = openTestApi();

  it('finds a charge and both of its accounts, and the account of a budget or a key', async () => {
    const operator = await api.createAccount(0);
    const cookie = await signIn(api, api.databaseUrl, operator.email);
    await makeOperator(api.sql, operator.email);
    const find = async (query: string) => {
      const path = `/v1/operator/accounts?query=${query}`;
      const answer = await call(api, 'GET', path, { headers: { cookie } });
      return bodyOf(answer, 200, AccountsReply).accounts;
    };
    const payer = await api.createAccount(20);
    const developer = await api.createAccount(0);
    const paid = { ...developer, consumerKey: payer.consumerKey };
    const made = bodyOf(await charge(api, paid, { amount: 1 }), 201, ChargeReply);
    const budget = await makeBudget(api, payer.consumerKey);
    const spendKey = await makeKey(api, payer.consumerKey, budget.id);
    const [account] = await find(payer.email);
    const { rows } = await api.sql.query<{ id: string }>(
      'select id from farebox.api_keys where account_id = $1 limit 1',
      [uuidOf('account', account?.id)],
    );
    const clues: Readonly<Record<string, readonly string[]>> = {
      [made.id]: [payer.email, developer.email],
      [budget.id]: [payer.email],
      [spendKey.id]: [payer.email],
      [wireId('key', rows[0]?.id ?? '')]: [payer.email],
    };
    for (const [clue, emails] of Object.entries(clues)) {
      const found = (await find(clue)).map(({ email }) => email);
      assert.deepEqual(found, emails.toSorted(), clue);
    }
    const shown = (id: string) =>
      call(api, 'GET', `/v1/operator/charges/${id}`, { headers: { cookie } });
    const { tool, amount, consumerId } = bodyOf(await shown(made.id), 200, OperatorChargeReply);
    assert.deepEqual(
      { tool, amount, consumerId },
      { tool: made.tool, amount: 1, consumerId: account?.consumerId },
    );
    const tests = await testSideOf(api, api.databaseUrl, payer, 1);
    const play = bodyOf(await charge(api, tests, { amount: 1 }), 201, ChargeReply);
    for (const id of [play.id, `chg_${'0'.repeat(32)}`])
      assert.equal((await shown(id)).status, 404);
    for (const kind of ['chg', 'bdg', 'key']) {
      assert.deepEqual(await find(`${kind}_${'0'.repeat(32)}`), [], kind);
    }
  });
});
