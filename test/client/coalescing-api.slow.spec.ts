/** Coalesced charges against the real API: few requests, and books that are exact under every failure. */
import assert from 'node:assert/strict';
import { Farebox, FareboxError, type Charge } from '@farebox/client';
import { createAccount, type TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { proveBooks } from '../support/books.ts';
import { read } from '../support/http.ts';
import { startApiProcess, until, type ServerProcess } from '../support/stack.ts';
import { CountingProxy } from './counting-proxy.ts';

const CONCURRENT = 256;

function chargeAll(farebox: Farebox, account: TestAccount, amount: number) {
  return Array.from({ length: CONCURRENT }, () =>
    farebox.charge({ apiKey: account.consumerKey, tool: 'search', amount }),
  );
}

describe('client: concurrent charges against the API', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi();
  });
  after(() => api?.stop());

  const balanceOf = async (account: TestAccount, server: Pick<TestApi, 'url'> = api) =>
    (await read<{ balance: number }>(`${server.url}/v1/balance`, account.consumerKey)).balance;

  it('take the money of each once, in few requests', async () => {
    await using proxy = await CountingProxy.start(api.url);
    const account = await createAccount(api.env, 100);
    // A busy machine does not take longer, so no request is repeated.
    const farebox = new Farebox({
      secretKey: account.developerKey,
      baseUrl: proxy.url,
      timeoutMs: 60_000,
    });
    const charges: Charge[] = [];
    for (let round = 0; round < 4; round += 1) {
      charges.push(...(await Promise.all(chargeAll(farebox, account, 0.01))));
    }
    assert.equal(new Set(charges.map(({ id }) => id)).size, 4 * CONCURRENT);
    assert.ok(charges.every(({ replayed }) => !replayed));
    assert.equal(await balanceOf(account), 89.76);
    const least = Math.min(...charges.map(({ balance }) => balance));
    assert.equal(least, 89.76);
    assert.ok(proxy.requests.length <= 16, proxy.requests.join());
  });

  it('refuse only those that the balance does not cover', async () => {
    const account = await createAccount(api.env, 10);
    const farebox = new Farebox({
      secretKey: account.developerKey,
      baseUrl: api.url,
      timeoutMs: 60_000,
    });
    const settled = await Promise.allSettled(chargeAll(farebox, account, 0.1));
    const refused = settled.filter(({ status }) => status === 'rejected');
    assert.equal(settled.length - refused.length, 100);
    for (const { reason } of refused as PromiseRejectedResult[]) {
      assert.ok(FareboxError.isInstance(reason));
      assert.equal(reason.code, 'insufficient_balance');
      assert.equal(reason.shortfall, 0.1);
      assert.ok(reason.topUpUrl && reason.requestId && reason.docUrl);
    }
    assert.equal(await balanceOf(account), 0);
  });

  it('are the same charges as those sent one by one', async () => {
    const account = await createAccount(api.env, 10);
    const options = { secretKey: account.developerKey, baseUrl: api.url };
    const requests = ['a', 'b c', 'd,e'].map((idempotencyKey) => ({
      apiKey: account.consumerKey,
      tool: 'search',
      amount: 1,
      metadata: { job: idempotencyKey, n: 1, gone: null },
      idempotencyKey,
    }));
    const together = new Farebox(options);
    const first = await Promise.all(requests.map((request) => together.charge(request)));
    const apart = new Farebox({ ...options, coalesce: false });
    const second = await Promise.all(requests.map((request) => apart.charge(request)));
    assert.deepEqual(
      second,
      first.map((charge) => ({ ...charge, replayed: true })),
    );
    assert.equal(await balanceOf(account), 7);
  });

  it('take the money of each once while the API is killed and started again', async () => {
    const victim = { current: await startApiProcess({ env: api.env }) };
    try {
      await chargeThroughKills(victim);
    } finally {
      await victim.current.stop();
    }
  });

  async function chargeThroughKills(victim: { current: ServerProcess }): Promise<void> {
    const { url } = victim.current;
    const account = await createAccount(api.env, 100);
    const farebox = new Farebox({
      secretKey: account.developerKey,
      baseUrl: url,
      timeoutMs: 3_000,
      maxRetries: 1_000,
    });
    const charges: Charge[] = [];
    const callers = Array.from({ length: CONCURRENT }, async () => {
      for (let calls = 0; calls < 20; calls += 1) {
        const request = { apiKey: account.consumerKey, tool: 'search', amount: 0.01 };
        charges.push(await farebox.charge(request));
      }
    });
    const all = Promise.all(callers);
    const total = CONCURRENT * 20;
    for (const mark of [total / 10, total / 2]) {
      await Promise.race([all, until(() => charges.length >= mark, { intervalMs: 1 })]);
      victim.current.kill('SIGKILL');
      await victim.current.exited;
      assert.ok(charges.length < total, 'the kill came when all was done');
      victim.current = await startApiProcess({ env: { ...api.env, PORT: new URL(url).port } });
    }
    await all;
    assert.equal(new Set(charges.map(({ id }) => id)).size, total);
    assert.equal(await balanceOf(account, victim.current), 48.8);
    await proveBooks(api.env, { processor: false });
  }
});
