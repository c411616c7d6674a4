/** A stack with agents on loopback, an account that calls them, and the operators' view of it. */
import { randomUUID } from 'node:crypto';
import { AgentReply } from '../../src/schemas/agents.ts';
import { GrantReply } from '../../src/schemas/grants.ts';
import { InvocationReply } from '../../src/schemas/invocations.ts';
import type { Static } from 'typebox';
import { startAgent, type Respond, type TestAgent } from './agents.ts';
import { type Answer, bodyOf, call, insistOn } from './http.ts';
import { startStack, until, type Environment, type Stack } from './stack.ts';
import { openViews } from './views.ts';

export type Invocation = Static<typeof InvocationReply>;
export type Grant = Static<typeof GrantReply>;
/** Statuses that say to ask again: a test asks for many things of one account at once. */
const BUSY = [429, 503];

export type AgentHarness = Awaited<ReturnType<typeof openAgentHarness>>;

export async function openAgentHarness(extra: Environment = {}) {
  return agentHarnessOf(await startStack({ env: { ALLOW_PRIVATE_ENDPOINTS: 'true', ...extra } }));
}

/** Over a stack with `ALLOW_PRIVATE_ENDPOINTS`, which it stops at its end. */
export async function agentHarnessOf(stack: Stack) {
  const views = await openViews(stack, 0);
  const { account } = views;
  const agents: TestAgent[] = [];

  return {
    ...views,
    /** Registers an agent under the id, with this behavior. */
    async agent(id: string, respond?: Respond, protocol = 'http'): Promise<TestAgent> {
      const agent = await startAgent(respond);
      agents.push(agent);
      await this.register(id, agent.url, protocol);
      return agent;
    },

    async register(id: string, endpoint: string, protocol = 'http'): Promise<void> {
      const body = { id, name: id, protocol, endpoint };
      bodyOf(await this.insist('/register', body), 201, AgentReply);
    },

    /** With one key until it is not refused: on a busy machine a statement may take too long, which changes nothing. */
    insist(path: string, body: object): Promise<Answer> {
      const key = { 'idempotency-key': randomUUID() };
      return insistOn(() => this.post(path, body, key), BUSY);
    },

    post(path: string, body?: object, headers: Readonly<Record<string, string>> = {}) {
      const keyed = { 'x-service-key': account.legacyKey, ...headers };
      return call(stack.api, 'POST', path, { headers: keyed, body });
    },

    get(path: string): Promise<Answer> {
      return call(stack.api, 'GET', path, { headers: { 'x-service-key': account.legacyKey } });
    },

    async grant(targetAgentId: string, changes: object = {}): Promise<Grant> {
      const body = { callerId: 'caller', targetAgentId, type: 'one_time', ...changes };
      return bodyOf(await this.insist('/grant', body), 201, GrantReply);
    },

    async grantNow(id: string): Promise<Grant> {
      return bodyOf(await insistOn(() => this.get(`/grant/${id}`), BUSY), 200, GrantReply);
    },

    /** With its own grant; in the state of the API's answer. */
    async invoke(targetAgentId: string, payload: object = { n: 1 }): Promise<Invocation> {
      const { id: grantId } = await this.grant(targetAgentId);
      const body = { targetAgentId, grantId, capability: 'translate', payload };
      const answer = await this.insist('/invoke', body);
      return bodyOf(answer, answer.status === 200 ? 200 : 202, InvocationReply);
    },

    /** The same, in its state after the end. */
    async outcomeOf(targetAgentId: string, payload?: object): Promise<Invocation> {
      return this.ended((await this.invoke(targetAgentId, payload)).id);
    },

    async invocationNow(id: string): Promise<Invocation> {
      return bodyOf(await insistOn(() => this.get(`/invoke/${id}`), BUSY), 200, InvocationReply);
    },

    /** In its state after the end. */
    async ended(id: string, timeoutMs?: number): Promise<Invocation> {
      return until(
        async () => {
          const now = await this.invocationNow(id);
          return now.completedAt !== null && now;
        },
        { timeoutMs },
      );
    },

    workflow: (kind: 'grant' | 'invocation', id: string) => views.workflow(kind, id),
    isFound: (kind: 'grant' | 'invocation', id: string, query: string) =>
      views.isFound(kind, id, query),
    detailsOf: (kind: 'grant' | 'invocation', id: string) => views.detailsOf(kind, id),
    async close(): Promise<void> {
      await Promise.all(agents.map((agent) => agent.stop()));
      await views.close();
    },
  };
}
