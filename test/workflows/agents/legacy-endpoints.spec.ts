/**
 * The nine legacy endpoints, one after the other as a caller uses them, with only the fields in each request that
 * the specification shows (section 4.4).
 */
import assert from 'node:assert/strict';
import { AgentReply, IntentReply, ResolveReply } from '../../../src/schemas/agents.ts';
import { GrantReply } from '../../../src/schemas/grants.ts';
import { InvocationReply, InvocationReceiptReply } from '../../../src/schemas/invocations.ts';
import { startAgent, type TestAgent } from '../../support/agents.ts';
import { assertError, bodyOf } from '../../support/http.ts';
import { openAgentHarness, type AgentHarness } from '../../support/agent-harness.ts';

describe('the legacy endpoints', () => {
  let harness: AgentHarness;
  let agent: TestAgent;

  before(async () => {
    harness = await openAgentHarness();
    agent = await startAgent();
  });
  after(async () => {
    await agent.stop();
    await harness.close();
  });

  it('lead from an agent’s registration to the receipt of an invocation', async () => {
    const passport = { id: 'agent_bob', name: 'Bob Translates', protocol: 'http' };
    const registered = await harness.post('/register', { ...passport, endpoint: agent.url });
    assert.equal(bodyOf(registered, 201, AgentReply).id, 'agent_bob');

    const query = 'translate';
    const resolved = await harness.post('/resolve', { query, topK: 3 });
    const { results, intent } = bodyOf(resolved, 200, ResolveReply);
    const [first] = results;
    assert.deepEqual([first?.agentId, first?.protocol], ['agent_bob', 'http']);
    const previewed = await harness.post('/intent/preview', { query });
    assert.deepEqual(bodyOf(previewed, 200, IntentReply).intent, intent);

    const targetAgentId = 'agent_bob';
    const asked = { callerId: 'agent_alice', targetAgentId, type: 'one_time' };
    const grant = bodyOf(await harness.post('/grant', asked), 201, GrantReply);
    assert.deepEqual(await harness.grantNow(grant.id), grant);

    const payload = { text: 'Hello', to: 'fr' };
    const body = { targetAgentId, grantId: grant.id, capability: 'translate', payload };
    const answer = await harness.post('/invoke', body);
    const { id } = bodyOf(answer, answer.status === 200 ? 200 : 202, InvocationReply);
    const { status, result } = await harness.ended(id);
    assert.equal(status, 'succeeded');
    assert.deepEqual((result as { echo: { payload: unknown } }).echo.payload, payload);

    const receipt = bodyOf(await harness.get(`/receipts/${id}`), 200, InvocationReceiptReply);
    assert.deepEqual(
      [receipt.invocationId, receipt.grantId, receipt.callerId, receipt.status],
      [id, grant.id, 'agent_alice', 'succeeded'],
    );
    assert.equal((await harness.grantNow(grant.id)).status, 'used');
  });

  it('revoke a grant, which then allows no invocation', async () => {
    const { id: grantId } = await harness.grant('agent_bob');
    const calls = agent.calls.length;
    const revoked = bodyOf(await harness.post(`/grant/${grantId}/revoke`), 200, GrantReply);
    assert.equal(revoked.status, 'revoked');
    const body = { targetAgentId: 'agent_bob', grantId, capability: 'translate', payload: {} };
    assertError(await harness.post('/invoke', body), 409, 'grant_not_active', 'grantId');
    assert.equal(agent.calls.length, calls);
  });
});
