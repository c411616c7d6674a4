/**
 * During a rollout, processes of the previous release still run on the new schema. So the API of
 * the commit before the last schema change charges, refunds and reads here, and the books are correct afterwards.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { startChild } from '../../src/embedded/child.ts';
import { choosePort } from '../../src/embedded/ports.ts';
import { dumpSchema } from '../../src/store/audit/schema-dump.ts';
import { createDatabase } from '../../src/store/database.ts';
import { migrate } from '../../src/store/migrations.ts';
import { createTestAccounts, type TestAccount } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { call, charge } from '../support/http.ts';
import { openCheckout, pay, topUpsOf } from '../support/payments.ts';
import {
  createEmptyDatabase,
  startStack,
  until,
  type Server,
  type Stack,
} from '../support/stack.ts';
import { read } from '../tree/sources.ts';
import { checkOut, findPreviousCommit, type Checkout } from './previous-release.ts';

/** When it has to install packages. */
const TIMEOUT_MS = 600_000;

const commit = findPreviousCommit();

describe(`the API of ${commit ?? 'the commit before'}, on the current schema`, function () {
  if (!commit) {
    it('charges, refunds and reads top-ups (left out: there is no git history here)');
    return;
  }
  this.timeout(TIMEOUT_MS);
  let checkout: Checkout;
  let stack: Stack;
  let previous: Server;
  let account: TestAccount;

  before(async () => {
    checkout = await checkOut(commit);
    stack = await startStack();
    previous = await startPrevious(checkout.folder, stack);
    [account] = (await createTestAccounts(stack.database.url, 1, 10)) as [TestAccount];
  });
  after(async () => {
    await previous?.stop();
    await stack?.stop();
    await checkout?.remove();
  });

  /** Neither schemas nor types of this commit: the answers come from the previous release. */
  async function get(path: string, key: string): Promise<Record<string, unknown>> {
    const answer = await call(previous, 'GET', path, { key });
    assert.equal(answer.status, 200);
    return answer.body as Record<string, unknown>;
  }

  it('charges, once for an idempotency key, and refuses charges that the balance does not cover', async () => {
    const key = { 'idempotency-key': 'order-17' };
    const first = await charge(previous, account, { amount: 1 }, key);
    assert.equal(first.status, 201);
    assert.equal((first.body as { balance: number }).balance, 9);
    const again = await charge(previous, account, { amount: 1 }, key);
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
    assert.deepEqual(again.body, first.body);
    assert.deepEqual((await charge(stack.api, account, { amount: 1 }, key)).body, first.body);
    assert.equal((await charge(previous, account, { amount: 9.01 })).status, 402);
  });

  it('refunds a charge made by this release', async () => {
    const made = await charge(stack.api, account, { amount: 2 });
    const { id } = made.body as { id: string };
    const { balance } = await get('/v1/balance', account.consumerKey);
    const refund = await call(previous, 'POST', `/v1/charges/${id}/refund`, {
      key: account.developerKey,
      body: { amount: 0.5 },
    });
    assert.equal(refund.status, 201);
    const after = await get('/v1/balance', account.consumerKey);
    assert.equal(after['balance'], (balance as number) + 0.5);
  });

  it('shows the balance, and a top-up completed by this release', async () => {
    const { topUpId, sessionUrl } = await openCheckout(stack.api, account, 25);
    assert.ok(await pay(sessionUrl));
    await until(async () => (await topUpsOf(stack.api, account))[0]?.status === 'completed');
    const { topUps } = await get('/v1/top-up', account.consumerKey);
    const [shown] = topUps as { id: string; status: string; amount: number }[];
    assert.deepEqual(
      { id: shown?.id, status: shown?.status, amount: shown?.amount },
      { id: topUpId, status: 'completed', amount: 25 },
    );
  });

  it('has a database that migrates to the current schema', async () => {
    const database = await createEmptyDatabase();
    const pool = await createDatabase(database.url, { maxPoolSize: 1, onError: () => {} });
    try {
      await migrate(database.url, join(checkout.folder, 'migrations'));
      await migrate(database.url);
      assert.equal(await dumpSchema(pool), read('migrations/schema.sql'));
    } finally {
      await pool.end();
      await database.drop();
    }
  });

  it('leaves the books correct', async () => {
    await proveBooks(stack.env);
  });
});

async function startPrevious(folder: string, { env }: Stack): Promise<Server> {
  const port = await choosePort();
  const url = `http://127.0.0.1:${port}`;
  const { PATH, HOME } = process.env;
  const logFile = join(folder, 'api.log');
  const child = await startChild({
    name: 'previous api',
    command: [process.execPath, join(folder, 'src/cli.ts'), 'api'],
    env: { PATH, HOME, ...env, PORT: String(port), BASE_URL: url },
    logFile,
    ready: 'message',
  });
  return { ...child, url, logFile };
}
