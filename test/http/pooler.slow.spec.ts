/**
 * The whole service through PgBouncer in transaction mode, with far fewer sessions than it opens connections:
 * charges, holds, leases, top-ups, roll-ups and the console.
 */
import assert from 'node:assert/strict';
import { createDatabase } from '../../src/store/database.ts';
import { rollUp } from '../../src/store/earnings/rollups.ts';
import { createTestAccounts, type TestAccount } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { capture, place } from '../support/hold-requests.ts';
import { call, charge, isToRepeat } from '../support/http.ts';
import { makeLeasable, settle, takeLease } from '../support/lease-requests.ts';
import { pgBouncerVersion, startPgBouncer, type PgBouncer } from '../support/pgbouncer.ts';
import { signIn } from '../support/sessions.ts';
import {
  createTestDatabase,
  startApi,
  until,
  type Server,
  type TestDatabase,
} from '../support/stack.ts';
import { openTopUpHarness, type TopUpHarness } from '../support/top-up-harness.ts';

const PREPARED_SINCE = 1.21;

for (const preparedMax of [undefined, 200]) {
  const kind = preparedMax === undefined ? 'without' : 'with';
  describe(`behind PgBouncer in transaction mode, ${kind} prepared statements`, () => {
    let testDatabase: TestDatabase;
    let pooler: PgBouncer;
    let harness: TopUpHarness;
    let apis: Server[];

    before(async function () {
      const version = pgBouncerVersion() ?? 0;
      if (version === 0 || (preparedMax !== undefined && version < PREPARED_SINCE)) {
        process.stdout.write(`    PgBouncer is not there, or too old: ${version}\n`);
        this.skip();
      }
      testDatabase = await createTestDatabase();
      pooler = await startPgBouncer(testDatabase.url, {
        sessions: 8,
        ...(preparedMax !== undefined && { preparedMax }),
      });
      const given = { url: pooler.pooledUrl, drop: () => testDatabase.drop() };
      harness = await openTopUpHarness({}, () => false, given);
      const env = { ...harness.env, PORT: undefined };
      apis = await Promise.all([startApi({ env }), startApi({ env })]);
      await harness.startWorker();
    });
    after(async () => {
      await Promise.all(apis?.map((api) => api.stop()) ?? []);
      // Its database is dropped at the end.
      await harness?.close();
      await pooler?.stop();
    });

    const newAccounts = (count: number, dollars: number) =>
      createTestAccounts(pooler.pooledUrl, count, dollars);
    const balanceOf = async (account: TestAccount) => {
      const { body } = await call(apis[0]!, 'GET', '/v1/balance', { key: account.consumerKey });
      return (body as { balance: number }).balance;
    };

    it('makes concurrent charges of many consumers through two processes, exactly', async () => {
      const accounts = await newAccounts(8, 1);
      // On a busy machine, some wait for a connection longer than they may, and are to be sent again.
      const answers = await Promise.all(
        accounts.flatMap((account, n) =>
          Array.from({ length: 60 }, (_, turn) =>
            until(async () => {
              const keyed = { 'idempotency-key': `charge ${turn}` };
              const answer = await charge(apis[(n + turn) % 2]!, account, {}, keyed);
              return !isToRepeat(answer) && answer;
            }),
          ),
        ),
      );
      // $1.00 pays for fifty.
      assert.equal(answers.filter(({ status }) => status === 201).length, 400);
      assert.equal(answers.filter(({ status }) => status === 402).length, 80);
      for (const account of accounts) assert.equal(await balanceOf(account), 0);
    });

    it('recognizes a repeated charge, refunds it, captures holds and settles leases', async () => {
      const [account] = (await newAccounts(1, 10)) as [TestAccount];
      const [api, other] = apis as [Server, Server];
      const once = { 'idempotency-key': 'once' };
      const first = await charge(api, account, {}, once);
      const again = await charge(other, account, {}, once);
      assert.deepEqual([first.status, again.status], [201, 201]);
      const { id } = first.body as { id: string };
      assert.equal((again.body as { id: string }).id, id);
      const key = account.developerKey;
      const refund = await call(api, 'POST', `/v1/charges/${id}/refund`, { key, body: {} });
      assert.equal(refund.status, 201);
      await capture(other, account, (await place(api, account)).id);
      const { spendKey } = await makeLeasable(api, account.consumerKey);
      const lease = await takeLease(other, account, spendKey);
      await settle(api, account, lease.id, [{ sequence: 1 }, { sequence: 2 }]);
    });

    it('credits a top-up that was paid, by its webhook and by the relay', async () => {
      const consumer = await harness.newConsumer();
      const topUp = await harness.checkout(consumer, 25);
      await harness.pay(topUp.sessionUrl);
      await harness.statusBecomes(topUp, 'completed');
      assert.equal((await harness.books(consumer)).credited, 25_000_000);
    });

    it('adds up what developers earn, before and after a roll-up', async () => {
      const [account] = (await newAccounts(1, 10)) as [TestAccount];
      for (let n = 0; n < 5; n += 1) await charge(apis[n % 2]!, account);
      const earned = async () => {
        const { body } = await call(apis[0]!, 'GET', '/v1/earnings', { key: account.developerKey });
        return body;
      };
      const before = await earned();
      const database = await createDatabase(pooler.pooledUrl, {
        maxPoolSize: 2,
        onError: () => {},
      });
      try {
        await rollUp(database);
      } finally {
        await database.end();
      }
      assert.deepEqual(await earned(), before);
    });

    it('signs people in to the console', async () => {
      const [account] = (await newAccounts(1, 1)) as [TestAccount];
      await signIn(apis[0]!, pooler.pooledUrl, account.email);
    });

    it('leaves books in which doctor finds nothing', async () => {
      await proveBooks(harness.env);
    });
  });
}
