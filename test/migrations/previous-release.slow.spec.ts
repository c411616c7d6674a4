/**
 * During a rollout, processes of the previous release still run on the new schema. So the API of
 * the commit before the last schema change charges, refunds and reads here; then both releases replace each other under
 * load; and the books are correct afterwards.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { startChild } from '../../src/embedded/child.ts';
import { choosePort } from '../support/ports.ts';
import { dumpSchema } from '../../src/store/doctor/schema-dump.ts';
import { createDatabase } from '../../src/store/database.ts';
import { migrate } from '../../src/store/migrations.ts';
import { createTestAccount, createTestAccounts, type TestAccount } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { call, charge, read as readAnswer } from '../support/http.ts';
import { startLoad, type Load } from '../support/load.ts';
import { balanceOf, openCheckout, pay, topUpsOf } from '../support/payments.ts';
import {
  createEmptyDatabase,
  PATIENTLY,
  startApiProcess,
  startProcesses,
  startWorkerProcess,
  until,
  type Environment,
  type ServerProcess,
  type Stack,
} from '../support/stack.ts';
import { read } from '../tree/sources.ts';
import { checkOut, findPreviousCommit, type Checkout } from './previous-release.ts';

const commit = findPreviousCommit();

describe(`the API of ${commit ?? 'the commit before'}, on the current schema`, () => {
  if (!commit) {
    it('charges, refunds and reads top-ups (left out: there is no git history here)');
    return;
  }
  let checkout: Checkout;
  let stack: Stack<ServerProcess>;
  let previous: ServerProcess;
  let account: TestAccount;
  /** The processes that replaced the previous release. */
  let ours: readonly ServerProcess[] = [];

  before(async () => {
    checkout = await checkOut(commit);
    stack = await startProcesses({ env: { SHARE_PORT: 'true' } });
    previous = await startPrevious(checkout.folder, stack);
    account = await createTestAccount(stack.database.url, 10);
  });
  after(async () => {
    await previous?.stop();
    await Promise.all(ours.map((server) => server.stop()));
    await stack?.stop();
    await checkout?.remove();
  });

  /** Neither schemas nor types of this commit: the answers come from the previous release. */
  function get(path: string, key: string): Promise<Record<string, unknown>> {
    return readAnswer(previous.url + path, key);
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

  it('is replaced, and replaces this release, while clients charge and pay, and none sees a failure', async () => {
    const [charger, payer] = await createTestAccounts(stack.database.url, 2, 1_000);
    const load = startLoad(stack.api, charger!, payer!);
    const { env } = stack;
    try {
      await load.goesOn();
      const older = await Promise.all([
        startPreviousProcess(checkout.folder, 'api', env),
        startPreviousProcess(checkout.folder, 'worker', env),
      ]);
      await replaced([stack.api, stack.worker], load);
      ours = await Promise.all([startApiProcess({ env }), startWorkerProcess({ env })]);
      await replaced(older, load);
    } finally {
      await load.stop();
    }
    assert.equal(
      await balanceOf(stack.api, charger!),
      (1_000_000_000 - load.charges * 10_000) / 1e6,
    );
    // Processes stopped during payments; another one credits those.
    await until(async () => (await balanceOf(stack.api, payer!)) === 1_000 + load.payments * 5);
  });

  it('leaves the books correct', async () => {
    await proveBooks(stack.env);
  });
});

async function startPrevious(
  folder: string,
  { env }: Stack<ServerProcess>,
): Promise<ServerProcess> {
  const port = await choosePort();
  const url = `http://127.0.0.1:${port}`;
  const own = { ...env, SHARE_PORT: 'false', PORT: String(port), BASE_URL: url };
  return { ...(await startPreviousProcess(folder, 'api', own)), url };
}

async function startPreviousProcess(
  folder: string,
  command: 'api' | 'worker',
  env: Environment,
): Promise<ServerProcess> {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  const logFile = join(folder, `${command}-${env['PORT']}.log`);
  const child = await startChild({
    name: `previous ${command}`,
    command: [process.execPath, join(folder, 'src/cli.ts'), command],
    env: { PATH, HOME, NODE_COMPILE_CACHE, ...env },
    logFile,
    ready: 'message',
    ...PATIENTLY,
  });
  return { ...child, url: '', logFile };
}

/** Stops processes under load, in order, and waits until clients have charged and paid without them. */
async function replaced(old: readonly ServerProcess[], load: Load): Promise<void> {
  await load.goesOn();
  for (const server of old) {
    server.kill('SIGTERM');
    assert.equal(await server.exited, 'exit code 0');
  }
  await load.goesOn();
}
