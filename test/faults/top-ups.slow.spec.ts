/** Parts that are down, or die, around a payment: it is credited once, and charging continues meanwhile. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { ChargeReply } from '../../src/schemas/charges.ts';
import { UsageReply } from '../../src/schemas/balance.ts';
import { createAccount, type TestAccount } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { assertError, bodyOf, call } from '../support/http.ts';
import {
  balanceOf,
  control,
  openCheckout,
  owedWebhooks,
  pay,
  topUpsOf,
} from '../support/payments.ts';
import {
  startApiProcess,
  startProcesses,
  startWorkerProcess,
  until,
  type ServerProcess,
  type Stack,
} from '../support/stack.ts';
import { holdConsumer } from '../support/row-locks.ts';
import { startOwnTemporal } from '../support/own-servers.ts';

/** In progress, other than that of who asks. */
const TRANSACTIONS = `pg_stat_activity
  where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()`;

describe('a payment and the death of', () => {
  let temporal: Awaited<ReturnType<typeof startOwnTemporal>>;
  let stack: Stack<ServerProcess>;
  let api: ServerProcess;
  let worker: ServerProcess;
  let account: TestAccount;

  before(async () => {
    temporal = await startOwnTemporal();
    stack = await startProcesses({
      env: {
        TEMPORAL_ADDRESS: temporal.address,
        TEMPORAL_NAMESPACE: 'default',
        // Only webhooks lead to credits here: the unprompted question comes after the tests.
        FIRST_ASK_MS: '3600000',
        // The default: a refusal while Temporal is away must not take longer.
        TOP_UP_ANSWER_MS: '10000',
      },
    });
    ({ api, worker } = stack);
  });
  beforeEach(async () => {
    account = await createAccount(stack.env, 10);
  });
  afterEach(() => proveBooks(stack.env));
  after(async () => {
    await worker?.stop();
    await api?.stop();
    await stack?.stop();
    await temporal?.remove();
  });

  const charge = () =>
    call(api, 'POST', '/v1/charges', {
      key: account.developerKey,
      body: { apiKey: account.consumerKey, tool: 'search', amount: 1 },
    });

  const creditArrives = (balance: number) =>
    until(async () => (await balanceOf(api, account)) === balance);

  async function count(what: string): Promise<number> {
    const client = new Client({ connectionString: stack.database.url });
    await client.connect();
    const { rows } = await client.query<{ count: number }>(
      `select count(*)::int as count from ${what}`,
    );
    await client.end();
    return rows[0]?.count ?? 0;
  }

  it('Temporal: charges and reads continue, a webhook is kept, the credit comes when it is back', async () => {
    const { topUpId, sessionUrl } = await openCheckout(api, account, 25);
    const events = await count('farebox.processor_events');
    await temporal.crash();

    bodyOf(await charge(), 201, ChargeReply);
    assert.equal(await balanceOf(api, account), 9);
    const usage = await call(api, 'GET', '/v1/usage', { key: account.consumerKey });
    assert.equal(bodyOf(usage, 200, UsageReply).total, 1);
    // On a busy machine, Postgres may answer a probe too late.
    const ready = await until(async () => {
      const answer = await call(api, 'GET', '/readyz');
      return answer.status === 200 && answer;
    });
    assert.deepEqual((ready.body as { dependencies: unknown }).dependencies, {
      postgres: 'up',
      clock: 'right',
      temporal: 'down',
    });

    for (const path of ['/v1/checkout', '/v1/top-up']) {
      const refused = await call(api, 'POST', path, {
        key: account.consumerKey,
        headers: { 'idempotency-key': path },
        body: { amount: 50 },
      });
      assertError(refused, 503, 'service_unavailable');
      assert.ok(Number(refused.headers.get('retry-after')) > 0);
    }
    const known = await topUpsOf(api, account);
    assert.deepEqual(
      known.map(({ id, method, status }) => [method, status, id === topUpId]),
      [
        ['checkout', 'pending', true],
        ['manual', 'completed', false],
      ],
    );

    assert.ok(await pay(sessionUrl));
    await until(async () => (await owedWebhooks(stack.simulator)) === 0);
    assert.ok((await count('farebox.processor_events')) > events);
    assert.equal(await balanceOf(api, account), 9);

    await temporal.restart();
    await creditArrives(34);
    assert.equal((await topUpsOf(api, account))[0]?.status, 'completed');
    // The refused keys name nothing, and top-ups are accepted again. 202: the worker is not back yet.
    const direct = await until(async () => {
      const answer = await call(api, 'POST', '/v1/top-up', {
        key: account.consumerKey,
        headers: { 'idempotency-key': '/v1/top-up' },
        body: { amount: 6 },
      });
      return [202, 503].includes(answer.status) ? undefined : answer;
    });
    assert.equal(direct.status, 201);
    assert.equal(await balanceOf(api, account), 40);
  });

  it('the API: a webhook that it did not accept is sent again', async () => {
    const { sessionUrl } = await openCheckout(api, account, 25);
    await control(stack.simulator, 'webhooks', { mode: 'hold' });
    assert.ok(await pay(sessionUrl));
    api.kill('SIGKILL');
    await api.exited;
    await control(stack.simulator, 'webhooks', { mode: 'deliver' });
    assert.ok((await owedWebhooks(stack.simulator)) > 0);
    api = await startApiProcess({ env: stack.env });
    await creditArrives(35);
  });

  for (const victim of ['the worker', 'Temporal'] as const) {
    it(`${victim} while the credit is being written`, async () => {
      const movements = await count('farebox.movements');
      const { sessionUrl } = await openCheckout(api, account, 25);
      const held = await holdConsumer(stack.database.url, account.consumerId);
      assert.ok(await pay(sessionUrl));
      await held.waited(1);
      if (victim === 'Temporal') {
        await temporal.crash();
        await held.release();
        // Written, but not reported: the step runs again. On a busy machine, it may have waited for its row for longer
        // than it may, and runs again when Temporal is back.
        await until(async () => (await count(TRANSACTIONS)) === 0);
        if ((await balanceOf(api, account)) === 10) await temporal.restart();
        await creditArrives(35);
        if (temporal.hasEnded()) await temporal.restart();
      } else {
        worker.kill('SIGKILL');
        await worker.exited;
        await held.release();
        worker = await startWorkerProcess({ env: stack.env });
        await creditArrives(35);
      }
      const again = await openCheckout(api, account, 5);
      assert.ok(await pay(again.sessionUrl));
      await creditArrives(40);
      assert.equal(await count('farebox.movements'), movements + 2);
    });
  }
});
