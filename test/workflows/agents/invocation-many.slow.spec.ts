/** Many invocations of one session at once: each is done once. */
import assert from 'node:assert/strict';
import { InvocationReply } from '../../../src/schemas/invocations.ts';
import { bodyOf } from '../../support/http.ts';
import { openAgentHarness, type AgentHarness } from '../../support/agent-harness.ts';

describe('many invocations', () => {
  let harness: AgentHarness;

  before(async () => {
    harness = await openAgentHarness();
  });
  after(() => harness.close());

  async function grantSession(agentId: string): Promise<string> {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    return (await harness.grant(agentId, { type: 'session', expiresAt })).id;
  }

  const invoke = (agentId: string, grantId: string, payload: object) =>
    harness.post('/invoke', { targetAgentId: agentId, grantId, capability: 'c', payload });

  it('of one session, sixty at once, are each done once', async () => {
    const agent = await harness.agent('popular');
    const grantId = await grantSession('popular');
    const startedAt = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, n) => invoke('popular', grantId, { n })),
    );
    // Far more than it takes, for a busy machine.
    assert.ok(performance.now() - startedAt < 60_000);
    const ids = answers.map((answer) => {
      assert.ok(answer.status === 200 || answer.status === 202, JSON.stringify(answer.body));
      return bodyOf(answer, answer.status, InvocationReply).id;
    });
    for (const [n, id] of ids.entries()) {
      const { status, result } = await harness.ended(id, 120_000);
      assert.equal(status, 'succeeded');
      const { echo } = result as { echo: { payload: unknown } };
      assert.deepEqual(echo.payload, { n });
    }
    assert.deepEqual(agent.effects, new Set(ids));
    assert.equal((await harness.grantNow(grantId)).uses, 60);
  });
});
