/** The steps of grants and invocations, started by hand: the rows decide, for any caller. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { agentTaskQueue } from '../../../src/domain/task-queues.ts';
import { until } from '../../support/stack.ts';
import { openAgentHarness, type AgentHarness } from '../../support/agent-harness.ts';

describe('a step of an invocation that is started by hand', () => {
  let harness: AgentHarness;

  before(async () => {
    harness = await openAgentHarness();
  });
  after(() => harness.close());

  async function start(
    name: string,
    args: unknown[],
    toAgent = false,
  ): Promise<'done' | 'refused'> {
    const { client, taskQueue } = harness.temporal;
    return client.activity
      .execute(name, {
        id: randomUUID(),
        taskQueue: toAgent ? agentTaskQueue(taskQueue) : taskQueue,
        args,
        startToCloseTimeout: '3m',
        retry: { maximumAttempts: 1 },
      })
      .then(
        () => 'done' as const,
        () => 'refused' as const,
      );
  }

  it('ends no invocation before its deadline, nor for an unknown reason', async () => {
    const agent = await harness.agent('slow', (_, response) => void response.writeHead(503).end());
    const { id } = await harness.invoke('slow');
    await until(() => agent.calls.length > 0);
    for (const code of ['deadline_exceeded', 'agent_refused', 'made_up']) {
      assert.equal(await start('giveUpInvocation', [id, code]), 'refused');
    }
    assert.equal((await harness.invocationNow(id)).completedAt, null);
    await harness.workflow('invocation', id).cancel();
    await harness.ended(id);
  });

  it('does not call the agent after the end, and changes nothing', async () => {
    const agent = await harness.agent('done');
    const ended = await harness.outcomeOf('done');
    const calls = agent.calls.length;
    await start('callAgent', [ended.id], true);
    await start('beginInvocation', [ended.id]);
    await start('giveUpInvocation', [ended.id, 'canceled']);
    assert.equal(agent.calls.length, calls);
    assert.deepEqual(await harness.invocationNow(ended.id), ended);
  });

  it('neither uses a grant nor returns it, nor lets it expire early', async () => {
    await harness.agent('granted');
    const active = await harness.grant('granted');
    const { grantId } = await harness.outcomeOf('granted');
    const used = await harness.grantNow(grantId);
    for (const grant of [active, used]) {
      assert.equal(await start('settleGrant', [grant.id]), 'done');
      assert.deepEqual(await harness.grantNow(grant.id), grant);
    }
  });
});
