/** The steps of grants and invocations, started by hand: the rows decide, whoever asks. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { agentTaskQueue } from '../../../src/domain/invocation.ts';
import { until } from '../../support/stack.ts';
import { openAgentDesk, type AgentDesk } from '../../support/agent-desk.ts';

describe('a step of an invocation that somebody starts by hand', function () {
  this.timeout(120_000);
  let desk: AgentDesk;

  before(async () => {
    desk = await openAgentDesk();
  });
  after(() => desk.close());

  async function start(
    name: string,
    args: unknown[],
    toAgent = false,
  ): Promise<'done' | 'refused'> {
    const { client, taskQueue } = desk.temporal;
    return client.activity
      .execute(name, {
        id: randomUUID(),
        taskQueue: toAgent ? agentTaskQueue(taskQueue) : taskQueue,
        args,
        startToCloseTimeout: '15s',
        retry: { maximumAttempts: 1 },
      })
      .then(
        () => 'done' as const,
        () => 'refused' as const,
      );
  }

  it('ends none whose time is not over, nor for a reason that there is not', async () => {
    const agent = await desk.agent('slow', (_, response) => void response.writeHead(503).end());
    const { id } = await desk.invoke('slow');
    await until(() => agent.calls.length > 0);
    for (const code of ['deadline_exceeded', 'agent_refused', 'made_up']) {
      assert.equal(await start('giveUpInvocation', [id, code]), 'refused');
    }
    assert.equal((await desk.invocationNow(id)).completedAt, null);
    await desk.workflow('invocation', id).cancel();
    await desk.ended(id);
  });

  it('calls the agent of one that has ended no more, and changes nothing of it', async () => {
    const agent = await desk.agent('done');
    const ended = await desk.outcomeOf('done');
    const calls = agent.calls.length;
    await start('callAgent', [ended.id], true);
    await start('beginInvocation', [ended.id]);
    await start('giveUpInvocation', [ended.id, 'canceled']);
    assert.equal(agent.calls.length, calls);
    assert.deepEqual(await desk.invocationNow(ended.id), ended);
  });

  it('neither uses a grant nor gives it back, nor lets it expire early', async () => {
    await desk.agent('granted');
    const active = await desk.grant('granted');
    const { grantId } = await desk.outcomeOf('granted');
    const used = await desk.grantNow(grantId);
    for (const grant of [active, used]) {
      assert.equal(await start('settleGrant', [grant.id]), 'done');
      assert.deepEqual(await desk.grantNow(grant.id), grant);
    }
  });
});
