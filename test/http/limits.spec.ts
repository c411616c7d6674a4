/** Limits of one caller: beyond them, it is told to wait, and nobody else notices. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { ChargeReply } from '../../src/schemas/charges.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { assertError, bodyOf, call, charge } from '../support/http.ts';
import { until } from '../support/stack.ts';

const READS_PER_SECOND = 20;
const FAILED_KEYS_PER_SECOND = 10;

describe('limits', () => {
  let api: TestApi;
  let account: TestAccount;
  let other: TestAccount;

  before(async () => {
    api = await startTestApi({
      env: {
        READS_PER_SECOND: String(READS_PER_SECOND),
        REFUNDS_PER_SECOND: '1',
        FAILED_KEYS_PER_SECOND: String(FAILED_KEYS_PER_SECOND),
      },
    });
    account = await api.createAccount(10);
    other = await api.createAccount(10);
    for (const each of [account, other]) bodyOf(await charge(api, each), 201, ChargeReply);
  });
  after(() => api?.stop());

  const balance = ({ consumerKey }: TestAccount) =>
    call(api, 'GET', '/v1/balance', { key: consumerKey });

  it('count the reads of an account, state what remains, and refuse no other account', async () => {
    const first = await balance(account);
    assert.equal(first.status, 200);
    assert.match(first.headers.get('ratelimit') ?? '', /^"reads";r=\d+;t=\d$/);
    assert.equal(first.headers.get('ratelimit-policy'), `"reads";q=${READS_PER_SECOND};w=1`);
    const answers = await Promise.all(
      Array.from({ length: 3 * READS_PER_SECOND }, () => balance(account)),
    );
    const refused = answers.filter(({ status }) => status === 429);
    assert.ok(refused.length > 0);
    for (const answer of refused) {
      assertError(answer, 429, 'rate_limited');
      assert.match(answer.headers.get('ratelimit') ?? '', /^"reads";r=0;t=\d$/);
      assert.equal(answer.headers.get('retry-after'), '1');
    }
    assert.equal((await balance(other)).status, 200);
    bodyOf(await charge(api, account), 201, ChargeReply);
    await until(async () => (await balance(account)).status === 200);
  });

  it('count refunds of an account', async () => {
    const { id } = bodyOf(await charge(api, account), 201, ChargeReply);
    const refund = () =>
      call(api, 'POST', `/v1/charges/${id}/refund`, {
        key: account.developerKey,
        body: { amount: 0.001 },
      });
    const answers = await Promise.all([refund(), refund(), refund()]);
    const refused = answers.filter(({ status }) => status !== 201);
    assert.ok(refused.length > 0);
    for (const answer of refused) assertError(answer, 429, 'rate_limited');
  });

  it('count invalid keys from an address, and let valid ones in', async () => {
    const key = 'fare_ck_live_none';
    const answers = await Promise.all(
      Array.from({ length: 3 * FAILED_KEYS_PER_SECOND }, () =>
        call(api, 'GET', '/v1/balance', { key }),
      ),
    );
    const codes = new Set(answers.map(({ status }) => status));
    assert.deepEqual(codes, new Set([401, 429]));
    assert.equal((await balance(other)).status, 200);
  });

  it('leave connections for others while an account reads slowly, and for charges', async () => {
    const blocker = new Client({ connectionString: api.databaseUrl });
    await blocker.connect();
    await blocker.query('begin; lock table farebox.charge_refunds in access exclusive mode');
    const lists = Array.from({ length: READS_PER_SECOND / 2 }, () =>
      call(api, 'GET', '/v1/charges', { key: account.developerKey }),
    );
    await until(api.waitingBackend);
    try {
      for (let n = 0; n < 10; n += 1) {
        for (const each of [account, other]) bodyOf(await charge(api, each), 201, ChargeReply);
      }
      const sent = performance.now();
      assert.equal((await balance(other)).status, 200);
      assert.ok(performance.now() - sent < 1_000);
      assert.equal((await call(api, 'GET', '/readyz')).status, 200);
      // Its own reads have to wait, and those that would wait too long are refused.
      const refused = (await Promise.all(lists)).filter(({ status }) => status === 429);
      assert.ok(refused.length > 0);
      for (const answer of refused) assertError(answer, 429, 'rate_limited');
    } finally {
      await blocker.end();
    }
  });
});
