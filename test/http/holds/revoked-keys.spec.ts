/** A consumer key of an account that is revoked with `releaseHolds`: what the account's consumer keys reserve comes back. */
import assert from 'node:assert/strict';
import { BalanceReply } from '../../../src/schemas/balance.ts';
import { AccountKeysReply, KeyReply, KeysReply, NewKeyReply } from '../../../src/schemas/keys.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import { makeBudget, makeKey } from '../../support/budget-requests.ts';
import { askCapture, place, show } from '../../support/hold-requests.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';
import { signIn } from '../../support/sessions.ts';
import { farebox } from '../../support/stack.ts';

describe('open holds by a consumer key that is revoked', () => {
  const api = openTestApi();
  let account: TestAccount;
  let headers: { cookie: string; origin: string };

  beforeEach(async () => {
    account = await api.createAccount(10);
    headers = { cookie: await signIn(api, api.databaseUrl, account.email), origin: api.url };
  });

  const post = (path: string, body?: object) => call(api, 'POST', path, { headers, body });
  const releasing = (id: string) => post(`/v1/keys/${id}/revoke`, { releaseHolds: true });
  const make = async (kind: string) =>
    bodyOf(await post('/v1/keys', { kind, mode: 'test' }), 201, NewKeyReply);
  const keyId = async (of: 'consumer' | 'developer') => {
    const { keys } = bodyOf(await call(api, 'GET', '/v1/keys', { headers }), 200, KeysReply);
    return keys.find(({ kind }) => kind === of)?.id ?? '';
  };
  const isReleased = async (id: string, by = account) => {
    const answer = await askCapture(api, by, id);
    assertError(answer, 409, 'hold_closed', undefined, { status: 'released' });
  };
  const change = async (developerDayLimit: number) => {
    const body = { developerDayLimit };
    const answer = await call(api, 'PATCH', '/v1/account-keys', { headers, body });
    bodyOf(answer, 200, AccountKeysReply);
  };

  it('are released when the owner asks for it, with those by its other consumer keys', async () => {
    const other = bodyOf(await post('/v1/keys', { kind: 'consumer' }), 201, NewKeyReply);
    const budget = await makeBudget(api, account.consumerKey);
    const { key: spendKey } = await makeKey(api, account.consumerKey, budget.id);
    const by = (consumerKey: string) => place(api, { ...account, consumerKey }, { amount: 1 });
    const stays = await by(spendKey);
    const goes = [await by(account.consumerKey), await by(other.key)];
    await change(5);
    // A limit for each developer counts its holds at a budget, by the number of a key that nobody holds.
    goes.push(await by(account.consumerKey));
    const stranger = await api.createAccount(5);
    const strange = await place(api, stranger);

    const revoked = bodyOf(await releasing(await keyId('consumer')), 200, KeyReply);
    assert.notEqual(revoked.revokedAt, null);
    for (const { id } of goes) await isReleased(id);
    assert.equal((await show(api, stranger, strange.id)).status, 'open');
    assert.equal((await askCapture(api, account, stays.id)).status, 201);
  });

  it('are captured unless the owner asks for it, and released when the revocation is repeated', async () => {
    const id = await keyId('consumer');
    const [paid, left] = [await place(api, account), await place(api, account)];
    bodyOf(await post(`/v1/keys/${id}/revoke`, { releaseHolds: false }), 200, KeyReply);
    assert.equal((await askCapture(api, account, paid.id)).status, 201);
    for (let n = 0; n < 2; n += 1) bodyOf(await releasing(id), 200, KeyReply);
    await isReleased(left.id);
    bodyOf(await post(`/v1/keys/${id}/revoke`), 200, KeyReply);
  });

  it('are released even if they are more than one step releases', async () => {
    const { consumerKey: apiKey, developerKey } = account;
    const entry = { op: 'hold', apiKey, tool: 'search', amount: 0.01 };
    const body = { charges: Array.from({ length: 201 }, () => entry) };
    await call(api, 'POST', '/v1/charges/batch', { key: developerKey, body });
    const held = async () => {
      const answer = await call(api, 'GET', '/v1/balance', { headers });
      return bodyOf(answer, 200, BalanceReply).held;
    };
    assert.equal(await held(), 2.01);
    bodyOf(await releasing(await keyId('consumer')), 200, KeyReply);
    assert.equal(await held(), 0);
  });

  it('are released when the revocation is repeated after a lock stopped it', async () => {
    const id = await keyId('consumer');
    const hold = await place(api, account);
    await api.sql.query('begin');
    await api.sql.query('lock table farebox.holds in access exclusive mode');
    assertError(await releasing(id), 500, 'outcome_unknown');
    await api.sql.query('rollback');
    bodyOf(await releasing(id), 200, KeyReply);
    await isReleased(hold.id);
  });

  it('are released by the command', async () => {
    const hold = await place(api, account);
    const id = await keyId('consumer');
    const revoke = async (...more: string[]) =>
      JSON.parse(await farebox(['key', 'revoke', id, ...more, '--json'], api)) as object;
    const { revokedAt } = (await revoke('--release-holds')) as { revokedAt: string };
    assert.notEqual(revokedAt, null);
    await isReleased(hold.id);
    assert.partialDeepStrictEqual(await revoke('--release-holds'), { id, revokedAt });
  });

  it('are released in test mode by a test key, and the live ones stay', async () => {
    const [consumer, developer] = [await make('consumer'), await make('developer')];
    const test = { ...account, consumerKey: consumer.key, developerKey: developer.key };
    const topUp = { key: consumer.key, body: { amount: 5 } };
    assert.equal((await call(api, 'POST', '/v1/top-up', topUp)).status, 201);
    const [played, live] = [await place(api, test), await place(api, account)];
    bodyOf(await releasing(consumer.id), 200, KeyReply);
    await isReleased(played.id, test);
    assert.equal((await askCapture(api, account, live.id)).status, 201);
  });

  it('are not what a secret key has, which stays active, nor for a stranger or a key to release', async () => {
    const [consumer, developer] = [await keyId('consumer'), await keyId('developer')];
    const hold = await place(api, account);
    await api.changingNothing(async () => {
      assertError(await releasing(developer), 400, 'invalid_request', 'releaseHolds');
      const stranger = await api.createAccount(0);
      const cookie = await signIn(api, api.databaseUrl, stranger.email);
      for (const by of [
        { headers: { ...headers, cookie } },
        { key: account.consumerKey },
        { key: stranger.consumerKey },
      ]) {
        const asked = { ...by, body: { releaseHolds: true } };
        const answer = await call(api, 'POST', `/v1/keys/${consumer}/revoke`, asked);
        assertError(answer, 404, 'not_found');
      }
    });
    assert.equal((await askCapture(api, account, hold.id)).status, 201);
  });
});
