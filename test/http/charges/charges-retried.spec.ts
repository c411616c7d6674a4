/** Retries of a successful charge after other changes: they get the charge's answer, never a refusal. */
import assert from 'node:assert/strict';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import { createTestAccount, type TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, bodyOf, call, charge } from '../../support/http.ts';
import { until } from '../../support/stack.ts';

describe('a retry of a successful charge', () => {
  let api: TestApi;
  let account: TestAccount;
  let keys = 0;

  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(100);
  });
  after(() => api?.stop());

  const newKey = () => `retried-${(keys += 1)}`;
  const byPrice = (tool: string, key: string) =>
    charge(api, account, { tool, amount: undefined }, { 'idempotency-key': key });
  const register = async (name: string) => {
    const body = { name, description: name, price: 1 };
    const answer = await call(api, 'POST', '/v1/tools', { key: account.developerKey, body });
    assert.equal(answer.status, 201);
    return (answer.body as { id: string }).id;
  };

  for (const [what, changes, code] of [
    ['archived', { archived: true }, 'tool_archived'],
    ['no longer priced', { price: null }, 'invalid_amount'],
  ] as const) {
    it(`gets the charge's answer when the tool is ${what}`, async () => {
      const tool = `tool-${what.replaceAll(' ', '-')}`;
      const id = await register(tool);
      const key = newKey();
      const first = bodyOf(await byPrice(tool, key), 201, ChargeReply);
      const { developerKey } = account;
      await call(api, 'PATCH', `/v1/tools/${id}`, { key: developerKey, body: changes });
      await api.changingNothing(async () => {
        const again = await byPrice(tool, key);
        assert.deepEqual(bodyOf(again, 201, ChargeReply), first);
        assert.equal(again.headers.get('idempotency-replayed'), 'true');
        assert.equal((await byPrice(tool, newKey())).status, 400);
        const other = { tool, amount: undefined, metadata: { other: true } };
        const reused = await charge(api, account, other, { 'idempotency-key': key });
        assertError(reused, 422, 'idempotency_key_reused');
        const param = code === 'tool_archived' ? 'tool' : 'amount';
        assertError(await charge(api, account, { tool, amount: undefined }), 400, code, param);
      });
    });
  }

  it("gets the charge's answer when the consumer's key was revoked, and charges nothing more", async () => {
    const consumer = await createTestAccount(api.databaseUrl, 10);
    const payer = { ...account, consumerKey: consumer.consumerKey };
    const key = newKey();
    const keyed = () => charge(api, payer, {}, { 'idempotency-key': key });
    const first = bodyOf(await keyed(), 201, ChargeReply);
    await api.sql.query(
      `update farebox.api_keys k set revoked_at = now(), changed_at = now() from farebox.accounts a
       where a.id = k.account_id and a.email = $1 and k.kind = 'consumer'`,
      [consumer.email],
    );
    await until(async () => (await charge(api, payer)).status === 401);
    await api.changingNothing(async () => {
      assert.deepEqual(bodyOf(await keyed(), 201, ChargeReply), first);
      const fresh = await charge(api, payer, {}, { 'idempotency-key': newKey() });
      assertError(fresh, 401, 'invalid_api_key', 'apiKey');
    });
  });

  it('is the same request with the metadata in any order', async () => {
    const headers = { 'idempotency-key': newKey() };
    const first = await charge(api, account, { metadata: { x: 1, y: 'two' } }, headers);
    const again = await charge(api, account, { metadata: { y: 'two', x: 1 } }, headers);
    assert.deepEqual(bodyOf(again, 201, ChargeReply), bodyOf(first, 201, ChargeReply));
    const other = await charge(api, account, { metadata: { x: 'two', y: 1 } }, headers);
    assertError(other, 422, 'idempotency_key_reused');
  });

  it('is another request with an amount that is none', async () => {
    const [tool, key, other] = ['tool-by-price', newKey(), newKey()];
    await register(tool);
    bodyOf(await byPrice(tool, key), 201, ChargeReply);
    const stated = { tool, amount: 10 };
    bodyOf(await charge(api, account, stated, { 'idempotency-key': other }), 201, ChargeReply);
    await api.changingNothing(async () => {
      for (const [amount, used] of [
        ['abc', key],
        ['1e1', other],
        ['0xa', other],
      ] as const) {
        const reused = await charge(api, account, { tool, amount }, { 'idempotency-key': used });
        assertError(reused, 422, 'idempotency_key_reused');
      }
    });
  });
});
