/** Each path that a grant and an invocation can take, for record.ts. */
import { InvocationReply } from '../../src/schemas/invocations.ts';
import { echo } from '../support/agents.ts';
import { bodyOf } from '../support/http.ts';
import { until } from '../support/stack.ts';
import type { AgentHarness } from '../support/agent-harness.ts';

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();

/** Each runs one to its end and returns the id of its workflow. */
export const AGENT_PATHS: Readonly<Record<string, (harness: AgentHarness) => Promise<string>>> = {
  async 'grant-used'(harness) {
    await harness.agent('echo');
    const { grantId } = await harness.invoke('echo');
    await until(() => harness.isFound('grant', grantId, 'GrantStatus = "used"'));
    return `grant/${grantId}`;
  },

  async 'grant-revoked'(harness) {
    await harness.agent('echo');
    const { id } = await harness.grant('echo');
    await until(() => harness.isFound('grant', id, 'ExecutionStatus = "Running"'));
    await harness.post(`/grant/${id}/revoke`);
    return `grant/${id}`;
  },

  async 'grant-expired'(harness) {
    await harness.agent('echo');
    const { id } = await harness.grant('echo', { type: 'session', expiresAt: inMs(1_000) });
    await until(() => harness.isFound('grant', id, 'GrantStatus = "expired"'));
    return `grant/${id}`;
  },

  async 'invocation-succeeded'(harness) {
    await harness.agent('echo');
    const { id } = await harness.invoke('echo');
    return `invocation/${id}`;
  },

  async 'invocation-refused'(harness) {
    await harness.agent('refusing', (_, response) => void response.writeHead(400).end());
    const { id } = await harness.invoke('refusing');
    return `invocation/${id}`;
  },

  async 'invocation-retried'(harness) {
    await harness.agent('flaky', (seen, response, count) =>
      count > 2 ? echo(seen, response, count) : void response.writeHead(503).end(),
    );
    const { id } = await harness.invoke('flaky');
    return `invocation/${id}`;
  },

  async 'invocation-stuck-then-retried'(harness) {
    await harness.agent('stuck', (seen, response, count) =>
      count > 6 ? echo(seen, response, count) : void response.writeHead(503).end(),
    );
    const { id } = await harness.invoke('stuck');
    await until(async () => {
      const { attempts } = await harness.invocationNow(id);
      if (attempts < 7) await harness.workflow('invocation', id).executeUpdate('retry');
      return attempts >= 7;
    });
    return `invocation/${id}`;
  },

  /** The run that follows a terminated one. */
  async 'invocation-begun-again'(harness) {
    await harness.agent('again', (seen, response, count) =>
      count > 2 ? echo(seen, response, count) : void response.writeHead(503).end(),
    );
    const { id: grantId } = await harness.grant('again');
    const body = { targetAgentId: 'again', grantId, capability: 'translate', payload: {} };
    const ask = async () => {
      const answer = await harness.post('/invoke', body, { 'idempotency-key': 'again' });
      return bodyOf(answer, answer.status, InvocationReply).id;
    };
    const workflow = harness.workflow('invocation', await ask());
    await workflow.terminate();
    await until(async () => (await workflow.describe()).status.name === 'TERMINATED');
    const id = await ask();
    await harness.ended(id);
    return `invocation/${id}`;
  },

  async 'invocation-canceled'(harness) {
    await harness.agent('away', (_, response) => void response.writeHead(503).end());
    const { id } = await harness.invoke('away');
    await harness.workflow('invocation', id).cancel();
    return `invocation/${id}`;
  },

  async 'invocation-beyond-share'(harness) {
    const hanging = await harness.agent('hanging', () => {});
    const { id: grantId } = await harness.grant('hanging', {
      type: 'session',
      expiresAt: inMs(60_000),
    });
    const body = { targetAgentId: 'hanging', grantId, capability: 'translate', payload: {} };
    // The share of an account that is alone; a few at a time, so that none misses its deadline.
    for (let calls = 20; calls <= 100; calls += 20) {
      await Promise.all(Array.from({ length: 20 }, () => harness.post('/invoke', body)));
      await until(() => hanging.calls.length >= calls);
    }
    await harness.agent('beyond');
    const { id } = await harness.invoke('beyond');
    return `invocation/${id}`;
  },

  async 'invocation-given-up'(harness) {
    await harness.agent('never', (_, response) => void response.writeHead(503).end());
    const { id } = await harness.invoke('never');
    return `invocation/${id}`;
  },
};
