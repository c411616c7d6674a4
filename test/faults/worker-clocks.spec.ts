/** A worker, and a command, whose clock is wrong: what they do about money goes by the clock of Postgres. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { ToolReply } from '../../src/schemas/tools.ts';
import { NewWebhookEndpointReply } from '../../src/schemas/webhook-endpoints.ts';
import { TopUpReply } from '../../src/schemas/top-ups.ts';
import { reconcileNow } from '../../src/temporal/reconcile-now.ts';
import { createAccount } from '../support/accounts.ts';
import { agentHarnessOf, type AgentHarness } from '../support/agent-harness.ts';
import { echo } from '../support/agents.ts';
import { startReceiver, verify } from '../support/receiver.ts';
import { bodyOf, call } from '../support/http.ts';
import { askForTopUp } from '../support/payments.ts';
import { farebox, startProcesses, until, type Environment } from '../support/stack.ts';

const PRELOAD = join(import.meta.dirname, '../support/shiftable-clock.ts');
const YEAR_MS = 365 * 86_400_000;
const AHEAD: Environment = {
  NODE_OPTIONS: `--import=${PRELOAD}`,
  CLOCK_AHEAD_MS: String(YEAR_MS),
};

describe('a worker whose clock is a year ahead', () => {
  let harness: AgentHarness;

  before(async () => {
    harness = await agentHarnessOf(
      await startProcesses({ env: { ALLOW_PRIVATE_ENDPOINTS: 'true' }, workerEnv: AHEAD }),
    );
  });
  after(() => harness?.close());

  it('charges the saved card for a top-up that was just requested', async () => {
    const { api, env } = harness.stack;
    const { consumerKey: key } = await createAccount(env, 0);
    const answer = await askForTopUp(api, '/v1/top-up', { key, body: { amount: 10 } });
    assert.equal(bodyOf(answer, 201, TopUpReply).status, 'completed');
  });

  it('signs events with the time of now', async () => {
    const { api, env } = harness.stack;
    const { developerKey: key } = await createAccount(env, 0);
    const receiver = await startReceiver();
    try {
      const made = await call(api, 'POST', '/v1/webhook-endpoints', {
        key,
        body: { url: receiver.url },
      });
      const { secret } = bodyOf(made, 201, NewWebhookEndpointReply);
      const tool = { name: 'search', description: 'Searches.', price: 1 };
      const { id } = bodyOf(
        await call(api, 'POST', '/v1/tools', { key, body: tool }),
        201,
        ToolReply,
      );
      await call(api, 'PATCH', `/v1/tools/${id}`, { key, body: { price: 2 } });
      verify(secret, await until(() => receiver.events[0]));
    } finally {
      await receiver.stop();
    }
  });

  it('calls an agent for an invocation that was just made', async () => {
    await harness.agent('quick', echo);
    assert.equal((await harness.outcomeOf('quick')).status, 'succeeded');
  });

  it('records no comparison with the processor of a time to come', async () => {
    await reconcileNow(harness.temporal, AbortSignal.timeout(300_000));
    const { rows } = await harness.sql.query<{ is_past: boolean }>(
      'select walked_until <= now() as is_past from farebox.reconciliation',
    );
    assert.deepEqual(rows, [{ is_past: true }]);
  });

  it('leaves no comparison out after an earlier release recorded one of a time to come', async () => {
    await harness.sql.query(
      `update farebox.reconciliation set walked_until = now() + interval '1 year'`,
    );
    await reconcileNow(harness.temporal, AbortSignal.timeout(300_000));
    const { rows } = await harness.sql.query<{ is_past: boolean }>(
      'select walked_until <= now() as is_past from farebox.reconciliation',
    );
    assert.deepEqual(rows, [{ is_past: true }]);
  });

  it('deletes no events, and makes the partitions of now', async () => {
    await harness.sql.query(
      `insert into farebox.events (id, account_id, type, data)
       values (uuidv7(), uuidv7(), 'top_up.completed', '{}')`,
    );
    const partitions = async () =>
      (await harness.sql.query(`select inhrelid from pg_inherits order by 1`)).rows;
    const before = await partitions();
    for (const workflow of ['pruneLogs', 'ensurePartitions']) {
      await harness.temporal.client.workflow.execute(workflow, {
        workflowId: workflow,
        taskQueue: harness.temporal.taskQueue,
      });
    }
    const { rows } = await harness.sql.query(
      `select from farebox.events where type = 'top_up.completed'`,
    );
    assert.ok(rows.length > 0);
    assert.deepEqual(await partitions(), before);
  });

  it('archives no month that is not closed, when it runs the command', async () => {
    const month = new Date().toISOString().slice(0, 7);
    await assert.rejects(
      farebox(['archive', '--month', month], { env: { ...harness.stack.env, ...AHEAD } }),
      /cannot be archived before/,
    );
  });
});
