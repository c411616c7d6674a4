/** Outages and deaths: an accepted invocation ends, and its agent acts on it once. */
import assert from 'node:assert/strict';
import { GrantReply } from '../../../src/schemas/grants.ts';
import { InvocationReply } from '../../../src/schemas/invocations.ts';
import { agentTaskQueue } from '../../../src/domain/task-queues.ts';
import { startOwnTemporal, type OwnServer } from '../../support/own-servers.ts';
import { echo, methodsOf, taskAgent } from '../../support/agents.ts';
import { bodyOf } from '../../support/http.ts';
import {
  startStackAndWorkerProcess,
  startWorker,
  startWorkerProcess,
  until,
  type Server,
  type ServerProcess,
  type Stack,
} from '../../support/stack.ts';
import {
  agentHarnessOf,
  openAgentHarness,
  type AgentHarness,
} from '../../support/agent-harness.ts';

/** TASK_QUEUE_TYPE_ACTIVITY */
const ACTIVITY_QUEUE = 2;

describe('invocations and deaths', () => {
  let stack: Stack<Server, ServerProcess>;
  let harness: AgentHarness;

  before(async () => {
    stack = await startStackAndWorkerProcess({ env: { ALLOW_PRIVATE_ENDPOINTS: 'true' } });
    harness = await agentHarnessOf(stack);
  });
  after(() => harness.close());

  it('call the agent again with the same key when the worker is killed during a call', async () => {
    const agent = await harness.agent('long', (seen, response, count) =>
      count === 1 ? undefined : echo(seen, response, count),
    );
    const { id } = await harness.invoke('long');
    await until(() => agent.calls.length === 1);
    stack.worker.kill('SIGKILL');
    await stack.worker.exited;
    const second = await startWorker({ env: stack.env });
    try {
      const done = await harness.ended(id);
      assert.deepEqual([done.status, done.attempts], ['succeeded', 2]);
      assert.deepEqual([...agent.effects], [id]);
      assert.equal(agent.calls.length, 2);
    } finally {
      await second.stop();
    }
  });

  it('ask an A2A agent for its task when the worker is killed meanwhile', async () => {
    stack.worker.kill('SIGKILL');
    await stack.worker.exited;
    const worker = await startWorkerProcess({ env: stack.env });
    let isDone = false;
    const agent = await harness.agent(
      'tasked',
      taskAgent(() => isDone),
      'a2a',
    );
    const { id } = await harness.invoke('tasked');
    // Beyond the first second: the heartbeats that follow keep the task.
    await until(() => agent.calls.length >= 6);
    worker.kill('SIGKILL');
    await worker.exited;
    isDone = true;
    const second = await startWorker({ env: stack.env });
    try {
      const done = await harness.ended(id);
      assert.deepEqual([done.status, done.attempts], ['succeeded', 2]);
      assert.equal(methodsOf(agent).filter((method) => method === 'SendMessage').length, 1);
    } finally {
      await second.stop();
    }
  });

  it('count no attempt when the worker is stopped during a call', async () => {
    const worker = await startWorkerProcess({ env: { ...stack.env, AGENT_GRACE_MS: '500' } });
    const agent = await harness.agent('slow', (seen, response, count) =>
      count === 1 ? undefined : echo(seen, response, count),
    );
    const { id } = await harness.invoke('slow');
    await until(() => agent.calls.length === 1);
    await worker.stop();
    await until(async () => (await harness.invocationNow(id)).attempts === 0);
    const second = await startWorker({ env: stack.env });
    try {
      const done = await harness.ended(id);
      assert.deepEqual([done.status, done.attempts], ['succeeded', 1]);
      assert.equal(agent.calls.length, 2);
    } finally {
      await second.stop();
    }
  });

  it('wait while no worker runs, and continue when one does', async () => {
    const agent = await harness.agent('waiting');
    const { id, status } = await harness.invoke('waiting');
    assert.equal(status, 'pending');
    assert.equal(agent.calls.length, 0);
    const worker = await startWorker({ env: stack.env });
    try {
      assert.equal((await harness.ended(id)).status, 'succeeded');
      assert.equal(agent.calls.length, 1);
    } finally {
      await worker.stop();
    }
  });

  it('are started by the relay when their API process died before it could', async () => {
    const agent = await harness.agent('orphan');
    const { id: grantId } = await harness.grant('orphan');
    // As such a process leaves it: used, written and noted, and nothing else.
    const { rows } = await harness.sql.query<{ id: string }>(
      `with used as (
         update farebox.grants set uses = 1, status = 'used', ended_at = now() where id = $1
         returning id, account_id
       ), written as (
         insert into farebox.invocations (id, account_id, grant_id, target_agent_id, capability,
           payload, request_hash, receipt_key)
         select gen_random_uuid(), account_id, id, 'orphan', 'c', '{}', sha256(''), 1 from used
         returning id
       ), noted as (
         insert into farebox.outbox (topic, subject_id) select 'invocation', id from written
       )
       select replace(id::text, '-', '') as id from written`,
      [grantId.slice('gnt_'.length)],
    );
    const worker = await startWorker({ env: stack.env });
    try {
      assert.equal((await harness.ended(`inv_${rows[0]?.id}`)).status, 'succeeded');
      assert.equal(agent.calls.length, 1);
    } finally {
      await worker.stop();
    }
  });
});

describe('invocations at their deadline', () => {
  let harness: AgentHarness;

  before(async () => {
    harness = await openAgentHarness({ INVOCATION_DEADLINE_MS: '5000' });
  });
  after(() => harness.close());

  it('fail, with the last attempt’s error', async () => {
    const agent = await harness.agent('never', (_, response) => void response.writeHead(502).end());
    // On a busy machine, the deadline may come before the first attempt has ended. The second follows it.
    const { status, error } = await until(async () => {
      const before = agent.calls.length;
      const { id } = await harness.invoke('never');
      const ended = await harness.ended(id);
      return agent.calls.length > before + 1 && ended;
    });
    assert.deepEqual([status, error?.code], ['failed', 'deadline_exceeded']);
    assert.match(error?.message ?? '', /It answered 502/);
  });

  it('fail when no worker calls agents', async () => {
    const { client, taskQueue } = harness.temporal;
    const agent = await harness.agent('unreached');
    // As if the queue had no worker.
    await client.workflowService.updateTaskQueueConfig({
      namespace: client.options.namespace,
      taskQueue: agentTaskQueue(taskQueue),
      taskQueueType: ACTIVITY_QUEUE,
      updateQueueRateLimit: { rateLimit: { requestsPerSecond: 0 }, reason: 'a test' },
    });
    const { id } = await harness.invoke('unreached');
    const { status, error } = await harness.ended(id);
    assert.deepEqual([status, error?.code], ['failed', 'deadline_exceeded']);
    assert.equal(agent.calls.length, 0);
  });
});

describe('invocations while Temporal is away', () => {
  let temporal: OwnServer & { readonly address: string };
  let harness: AgentHarness;

  before(async () => {
    temporal = await startOwnTemporal();
    const env = { TEMPORAL_ADDRESS: temporal.address, TEMPORAL_NAMESPACE: 'default' };
    harness = await openAgentHarness(env);
  });
  after(async () => {
    await harness.close();
    await temporal.remove();
  });

  it('are accepted like grants, and all continue when it is back', async () => {
    const agent = await harness.agent('patient');
    const before = await harness.grant('patient');
    await until(() => harness.isFound('grant', before.id, 'ExecutionStatus = "Running"'));
    await temporal.crash();

    const during = await Promise.all(Array.from({ length: 5 }, () => harness.grant('patient')));
    const answers = await Promise.all(
      [before, ...during.slice(1)].map(({ id: grantId }) =>
        harness.post('/invoke', {
          targetAgentId: 'patient',
          grantId,
          capability: 'c',
          payload: {},
        }),
      ),
    );
    const taken = answers.map((answer) => bodyOf(answer, 202, InvocationReply));
    assert.deepEqual(new Set(taken.map(({ status }) => status)), new Set(['pending']));
    const [revoked] = during;
    bodyOf(await harness.post(`/grant/${revoked?.id}/revoke`), 200, GrantReply);
    assert.equal(agent.calls.length, 0);

    await temporal.restart();
    for (const { id } of taken) assert.equal((await harness.ended(id)).status, 'succeeded');
    assert.deepEqual(agent.effects, new Set(taken.map(({ id }) => id)));
    assert.equal(agent.calls.length, 5);
    const endOf = (id = '') =>
      harness.workflow('grant', id).result() as Promise<{ status: string }>;
    assert.equal((await endOf(before.id)).status, 'used');
    assert.equal((await endOf(revoked?.id)).status, 'revoked');
  });
});
