/** Many invocations at once: each ends, and agents that hang hold up nothing else. */
import assert from 'node:assert/strict';
import { InvocationReply } from '../../../src/schemas/invocations.ts';
import { bodyOf } from '../../support/http.ts';
import { openCheckout, pay, topUpsOf } from '../../support/payments.ts';
import { until } from '../../support/stack.ts';
import { openAgentHarness, type AgentHarness } from '../../support/agent-harness.ts';

describe('many invocations', () => {
  let harness: AgentHarness;

  before(async () => {
    // Calls of agents that hang last longer than the test, so none is repeated meanwhile.
    harness = await openAgentHarness({ AGENT_TIMEOUT_MS: '600000', AGENT_GRACE_MS: '0' });
  });
  after(() => harness.close());

  async function grantSession(agentId: string): Promise<string> {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    return (await harness.grant(agentId, { type: 'session', expiresAt })).id;
  }

  const invoke = (agentId: string, grantId: string, payload: object) =>
    harness.post('/invoke', { targetAgentId: agentId, grantId, capability: 'c', payload });

  it('of one session, two hundred at once, are each done once', async () => {
    const agent = await harness.agent('popular');
    const grantId = await grantSession('popular');
    const startedAt = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, n) => invoke('popular', grantId, { n })),
    );
    // Two seconds on a quiet machine; more here, for a busy one.
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
    assert.equal((await harness.grantNow(grantId)).uses, 200);
  }).timeout(240_000);

  it('of agents that hang delay neither other agents nor top-ups', async () => {
    const hanging = await harness.agent('hanging', () => {});
    await harness.agent('quick');
    const grantId = await grantSession('hanging');
    await Promise.all(Array.from({ length: 120 }, (_, n) => invoke('hanging', grantId, { n })));
    await until(() => hanging.calls.length === 120, { timeoutMs: 240_000 });
    const { id } = await harness.invoke('quick');
    assert.equal((await harness.ended(id)).status, 'succeeded');
    const { topUpId, sessionUrl } = await openCheckout(harness.stack.api, harness.account, 25);
    await pay(sessionUrl);
    await until(async () => {
      const topUp = (await topUpsOf(harness.stack.api, harness.account)).find(
        ({ id }) => id === topUpId,
      );
      return topUp?.status === 'completed';
    });
    assert.equal(hanging.calls.length, 120);
  }).timeout(480_000);
});
