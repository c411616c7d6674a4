/**
 * Agents of one account that hang delay neither its other agents, its top-ups nor the invocations of other
 * accounts.
 */
import assert from 'node:assert/strict';
import { runWorker } from '../../../src/processes/worker.ts';
import { InvocationReply } from '../../../src/schemas/invocations.ts';
import { createTestAccount } from '../../support/accounts.ts';
import { bodyOf, call } from '../../support/http.ts';
import { openCheckout, pay, topUpsOf } from '../../support/payments.ts';
import {
  startApi,
  startHere,
  startStackOf,
  until,
  type Environment,
  type Server,
} from '../../support/stack.ts';
import { agentHarnessOf, type AgentHarness, type Invocation } from '../../support/agent-harness.ts';

/** A fifth of a worker's usual ones, in the same proportion. */
const AGENT_CALLS = { max: 40, reserved: 10, busyMax: 20 };
const SHARE = AGENT_CALLS.max / 2;
/** More than one account's share of the places for all. */
const BEYOND_SHARE = SHARE + 2;
/** That share, and the places of busy accounts. */
const CALLED = SHARE + AGENT_CALLS.busyMax;
/** More than all places within shares, too: if one account could take them, none would be left. */
const HANGING = CALLED + 2;

describe('invocations of agents that hang', () => {
  let harness: AgentHarness;

  before(async () => {
    // Calls last longer than the test, so none gives its place back meanwhile.
    const env = {
      ALLOW_PRIVATE_ENDPOINTS: 'true',
      AGENT_TIMEOUT_MS: '600000',
      AGENT_GRACE_MS: '0',
    };
    harness = await agentHarnessOf(await startStackOf({ startApi, startWorker }, { env }));
  });
  after(() => harness.close());

  it('take no more than their account’s share; other agents, another account and a top-up do not wait', async () => {
    const hanging = await harness.agent('hanging', () => {});
    await harness.agent('quick');
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const { id: grantId } = await harness.grant('hanging', { type: 'session', expiresAt });
    const body = { targetAgentId: 'hanging', grantId, capability: 'c', payload: {} };
    const hang = (count: number) =>
      Promise.all(Array.from({ length: count }, () => harness.post('/invoke', body)));

    await hang(BEYOND_SHARE);
    await until(() => hanging.calls.length === BEYOND_SHARE, { timeoutMs: 240_000 });
    assert.equal((await harness.outcomeOf('quick')).status, 'succeeded');

    await hang(HANGING - BEYOND_SHARE);
    await until(() => hanging.calls.length >= CALLED, { timeoutMs: 240_000 });
    const startedAt = performance.now();
    assert.equal((await outcomeOfAnother('quick')).status, 'succeeded');
    assert.ok(performance.now() - startedAt < 60_000);
    await topUp();
    await until(async () => (await waiting()) === HANGING - CALLED, { timeoutMs: 240_000 });
    assert.equal(hanging.calls.length, CALLED);
  });

  async function topUp(): Promise<void> {
    const { stack, account } = harness;
    const { topUpId, sessionUrl } = await openCheckout(stack.api, account, 25);
    await pay(sessionUrl);
    await until(async () => {
      const topUps = await topUpsOf(stack.api, account);
      return topUps.find(({ id }) => id === topUpId)?.status === 'completed';
    });
  }

  /** Invocations that have made no attempt. */
  async function waiting(): Promise<number> {
    const { rows } = await harness.sql.query<{ count: number }>(
      `select count(*)::int from farebox.invocations where status = 'running' and attempts = 0`,
    );
    return rows[0]?.count ?? 0;
  }

  async function outcomeOfAnother(targetAgentId: string): Promise<Invocation> {
    const { stack } = harness;
    const account = await createTestAccount(stack.database.url, 0);
    const headers = { 'x-service-key': account.legacyKey };
    const ask = (method: string, path: string, body?: object) =>
      call(stack.api, method, path, { headers, body });
    const grant = await ask('POST', '/grant', { callerId: 'x', targetAgentId, type: 'one_time' });
    const { id: grantId } = grant.body as { id: string };
    const sent = { targetAgentId, grantId, capability: 'c', payload: {} };
    const answer = await ask('POST', '/invoke', sent);
    const { id } = bodyOf(answer, answer.status === 200 ? 200 : 202, InvocationReply);
    return until(async () => {
      const now = bodyOf(await ask('GET', `/invoke/${id}`), 200, InvocationReply);
      return now.completedAt !== null && now;
    });
  }
});

async function startWorker({ env }: { readonly env: Environment }): Promise<Server> {
  const started = await startHere('worker', env, (config, log) =>
    runWorker(config, log, undefined, AGENT_CALLS),
  );
  return { ...started, url: '' };
}
