/** Each path that a grant and an invocation can take, for record.ts. */
import { InvocationReply } from '../../src/schemas/invocations.ts';
import { echo } from '../support/agents.ts';
import { bodyOf } from '../support/http.ts';
import { until } from '../support/stack.ts';
import type { AgentDesk } from '../support/agent-desk.ts';

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();

/** Each brings one to its end and returns the id of its workflow. */
export const AGENT_PATHS: Readonly<Record<string, (desk: AgentDesk) => Promise<string>>> = {
  async 'grant-used'(desk) {
    await desk.agent('echo');
    const { grantId } = await desk.invoke('echo');
    await until(() => desk.isFound('grant', grantId, 'GrantStatus = "used"'));
    return `grant/${grantId}`;
  },

  async 'grant-revoked'(desk) {
    await desk.agent('echo');
    const { id } = await desk.grant('echo');
    await until(() => desk.isFound('grant', id, 'ExecutionStatus = "Running"'));
    await desk.post(`/grant/${id}/revoke`);
    return `grant/${id}`;
  },

  async 'grant-expired'(desk) {
    await desk.agent('echo');
    const { id } = await desk.grant('echo', { type: 'session', expiresAt: inMs(1_000) });
    await until(() => desk.isFound('grant', id, 'GrantStatus = "expired"'));
    return `grant/${id}`;
  },

  async 'invocation-succeeded'(desk) {
    await desk.agent('echo');
    const { id } = await desk.invoke('echo');
    return `invocation/${id}`;
  },

  async 'invocation-refused'(desk) {
    await desk.agent('refusing', (_, response) => void response.writeHead(400).end());
    const { id } = await desk.invoke('refusing');
    return `invocation/${id}`;
  },

  async 'invocation-retried'(desk) {
    await desk.agent('flaky', (seen, response, count) =>
      count > 2 ? echo(seen, response, count) : void response.writeHead(503).end(),
    );
    const { id } = await desk.invoke('flaky');
    return `invocation/${id}`;
  },

  async 'invocation-stuck-then-retried'(desk) {
    await desk.agent('stuck', (seen, response, count) =>
      count > 6 ? echo(seen, response, count) : void response.writeHead(503).end(),
    );
    const { id } = await desk.invoke('stuck');
    await until(async () => {
      const { attempts } = await desk.invocationNow(id);
      if (attempts < 7) await desk.workflow('invocation', id).executeUpdate('retry');
      return attempts >= 7;
    });
    return `invocation/${id}`;
  },

  /** The run that follows a terminated one. */
  async 'invocation-begun-again'(desk) {
    await desk.agent('again', (seen, response, count) =>
      count > 2 ? echo(seen, response, count) : void response.writeHead(503).end(),
    );
    const { id: grantId } = await desk.grant('again');
    const body = { targetAgentId: 'again', grantId, capability: 'translate', payload: {} };
    const ask = async () => {
      const answer = await desk.post('/invoke', body, { 'idempotency-key': 'again' });
      return bodyOf(answer, answer.status, InvocationReply).id;
    };
    const workflow = desk.workflow('invocation', await ask());
    await workflow.terminate();
    await until(async () => (await workflow.describe()).status.name === 'TERMINATED');
    const id = await ask();
    await desk.ended(id);
    return `invocation/${id}`;
  },

  async 'invocation-canceled'(desk) {
    await desk.agent('away', (_, response) => void response.writeHead(503).end());
    const { id } = await desk.invoke('away');
    await desk.workflow('invocation', id).cancel();
    return `invocation/${id}`;
  },

  async 'invocation-given-up'(desk) {
    await desk.agent('never', (_, response) => void response.writeHead(503).end());
    const { id } = await desk.invoke('never');
    return `invocation/${id}`;
  },
};
