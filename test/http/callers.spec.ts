/** Callers that share an account: the holder of a lesser key keeps neither the owner nor another key waiting. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Client } from 'pg';
import { KeyReply } from '../../src/schemas/keys.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { makeBudget, makeKey } from '../support/budget-requests.ts';
import { assertError, bodyOf, call, type Answer } from '../support/http.ts';
import { signIn } from '../support/sessions.ts';
import { until } from '../support/stack.ts';

const READS_PER_SECOND = 20;

describe('an account', () => {
  let unlimited: TestApi;
  let limited: TestApi;
  let blocker: Client;
  let account: TestAccount;
  let headers: Readonly<Record<string, string>>;
  let spendKeys: readonly [
    Awaited<ReturnType<typeof makeKey>>,
    Awaited<ReturnType<typeof makeKey>>,
  ];

  before(async () => {
    unlimited = await startTestApi();
    limited = await startTestApi({ env: { READS_PER_SECOND: String(READS_PER_SECOND) } });
  });
  after(async () => {
    await unlimited?.stop();
    await limited?.stop();
  });

  async function prepare(api: TestApi): Promise<void> {
    account = await api.createAccount(10);
    const cookie = await signIn(api, api.databaseUrl, account.email);
    headers = { cookie, origin: api.url };
    const { consumerKey: key } = account;
    const { id } = await makeBudget(api, key);
    spendKeys = [await makeKey(api, key, id), await makeKey(api, key, id)];
  }

  const lockApprovals = () =>
    blocker.query('begin; lock table farebox.approvals in access exclusive mode');
  const listApprovals = (key: string) => call(unlimited, 'GET', '/v1/approvals', { key });
  const balanceFor = (credential: { key: string } | { headers: typeof headers }) =>
    call(unlimited, 'GET', '/v1/balance', credential);

  async function waitingStatements(): Promise<number> {
    const { rows } = await unlimited.sql.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows.length;
  }

  describe('whose keys ask much', () => {
    const open: Socket[] = [];

    beforeEach(async () => {
      await prepare(unlimited);
      blocker = new Client({ connectionString: unlimited.databaseUrl });
      await blocker.connect();
    });
    afterEach(async () => {
      for (const socket of open.splice(0)) socket.destroy();
      await blocker.end();
    });

    it('revokes a key for its owner, although the key announced bodies that never come', async () => {
      const [{ id, key }] = spendKeys;
      for (let n = 0; n < 10; n += 1) {
        const socket = connect(Number(new URL(unlimited.url).port), '127.0.0.1');
        open.push(socket.on('error', () => {}));
        socket.write(
          `POST /v1/approvals HTTP/1.1\r\nHost: farebox\r\nAuthorization: Bearer ${key}\r\n` +
            'Content-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n',
        );
        await once(socket, 'data');
      }
      const answer = await call(unlimited, 'POST', `/v1/keys/${id}/revoke`, { headers });
      assert.notEqual(bodyOf(answer, 200, KeyReply).revokedAt, null);
    });

    it('has one read of all its spend keys in progress, and reads for the others meanwhile', async () => {
      await lockApprovals();
      const asked = spendKeys.flatMap(({ key }) =>
        Array.from({ length: 20 }, () => listApprovals(key)),
      );
      await until(async () => (await waitingStatements()) === 1);
      for (const credential of [{ headers }, { key: account.consumerKey }]) {
        assert.equal((await balanceFor(credential)).status, 200);
      }
      await blocker.query('rollback');
      await Promise.all(asked);
    });

    it('reads for its owner next, although as many requests of its keys wait as may', async () => {
      await lockApprovals();
      const asked = Array.from({ length: 103 }, () => listApprovals(account.consumerKey));
      // The first answer is that of the one that is too many. The others may wait for two seconds.
      assertError(await Promise.race(asked), 429, 'rate_limited');
      const balance = balanceFor({ headers });
      // It is answered after the balance has arrived.
      assert.equal((await call(unlimited, 'GET', '/healthz')).status, 200);
      await blocker.query('rollback');
      assert.equal((await balance).status, 200);
      await Promise.all(asked);
    });

    it('tops up for its owner next, although as many top-ups of its keys wait as may', async () => {
      await blocker.query('begin; lock table farebox.top_ups in access exclusive mode');
      const topUp = (credential: { key: string } | { headers: typeof headers }) =>
        call(unlimited, 'POST', '/v1/top-up', { ...credential, body: { amount: 5 } });
      const answers: Answer[] = [];
      const asked = Array.from({ length: 103 }, async () => {
        answers.push(await topUp({ key: account.consumerKey }));
      });
      await until(() => answers.some(({ status }) => status === 429));
      // 503: on a slow machine, the lock was held for longer than a statement may wait for one.
      const ofOwner = until(async () => {
        const answer = await topUp({ headers });
        return answer.status !== 503 && answer;
      });
      // It is answered after the request of the owner has arrived.
      assert.equal((await balanceFor({ headers })).status, 200);
      await blocker.query('rollback');
      // The request had its turn: only then does anything look at the consent, which this owner has not given.
      const topUpUrl = `${unlimited.url}/top-up`;
      assertError(await ofOwner, 403, 'consent_required', undefined, { topUpUrl });
      await Promise.all(asked);
    });
  });

  it('counts the reads of each spend key, of its own keys, and of its owner, each apart', async () => {
    await prepare(limited);
    const read = (key: string) => call(limited, 'GET', '/v1/budgets', { key });
    const [{ key: busy }, { key: other }] = spendKeys;
    const flood = Array.from({ length: 50 }, () => read(busy));
    const others = [
      read(other),
      read(account.consumerKey),
      call(limited, 'GET', '/v1/balance', { headers }),
    ];
    for (const { status } of await Promise.all(others)) assert.equal(status, 200);
    const refused = (await Promise.all(flood)).filter(({ status }) => status !== 200);
    assert.ok(refused.length > 0);
    for (const answer of refused) {
      assertError(answer, 429, 'rate_limited');
      const policy = `"reads";q=${READS_PER_SECOND / 2};w=1`;
      assert.equal(answer.headers.get('ratelimit-policy'), policy);
    }
  });
});
