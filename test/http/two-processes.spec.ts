/** A change through one API process takes effect in the other: clients do not notice the difference. */
import assert from 'node:assert/strict';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { bodyOf, call } from '../support/http.ts';
import { LowBalanceReply } from '../../src/schemas/balance.ts';
import { startApiProcess, type Server } from '../support/stack.ts';

describe('two API processes', () => {
  let api: TestApi;
  let account: TestAccount;
  let one: Server;
  let other: Server;

  before(async () => {
    api = await startTestApi();
    one = api;
    other = await startApiProcess({ env: api.env });
    account = await api.createAccount(10);
  });
  after(async () => {
    await other?.stop();
    await api?.stop();
  });

  const charge = (server: Server, body: object) =>
    call(server, 'POST', '/v1/charges', {
      key: account.developerKey,
      body: { apiKey: account.consumerKey, ...body },
    });

  it('charge at once at a price that was set through the other one', async () => {
    const tool = 'registered later';
    for (const server of [one, other]) {
      assert.equal((await charge(server, { tool, amount: 1 })).status, 201);
      assert.equal((await charge(server, { tool })).status, 400);
    }
    const registration = { name: tool, description: '', price: 2 };
    const registered = await call(one, 'POST', '/v1/tools', {
      key: account.developerKey,
      body: registration,
    });
    assert.equal(registered.status, 201);
    const charged = await charge(other, { tool });
    assert.equal(charged.status, 201);
    assert.equal((charged.body as { amount: number }).amount, 2);
  });

  it('tell once that a balance is low and once that it is exhausted, whichever of them charges', async () => {
    const payer = await api.createAccount(10);
    const { developerKey: key } = payer;
    bodyOf(
      await call(one, 'PATCH', '/v1/low-balance', { key, body: { threshold: 5 } }),
      200,
      LowBalanceReply,
    );
    const endpoint = { url: 'https://example.com/events' };
    await call(other, 'POST', '/v1/webhook-endpoints', { key, body: endpoint });
    const answers = await Promise.all(
      Array.from({ length: 110 }, (_, n) =>
        charge(n % 2 ? one : other, { apiKey: payer.consumerKey, tool: 'low', amount: '0.10' }),
      ),
    );
    assert.equal(answers.filter(({ status }) => status === 201).length, 100);
    const { rows } = await api.sql.query(
      `select type, count(*)::int from farebox.events where type like 'balance.%' group by type order by type desc`,
    );
    assert.deepEqual(rows, [
      { type: 'balance.low', count: 1 },
      { type: 'balance.exhausted', count: 1 },
    ]);
  });

  it('listen on one port, and keep it open when one of them exits', async () => {
    const env = { ...api.env, SHARE_PORT: 'true' };
    const first = await startApiProcess({ env });
    const second = await startApiProcess({ env: { ...env, PORT: new URL(first.url).port } });
    try {
      assert.equal(second.url, first.url);
      const answers = await Promise.all(
        Array.from({ length: 40 }, () => fetch(`${first.url}/healthz`)),
      );
      assert.ok(answers.every(({ status }) => status === 200));
      await first.stop();
      assert.equal((await fetch(`${second.url}/healthz`)).status, 200);
    } finally {
      await Promise.all([first.stop(), second.stop()]);
    }
  });
});
