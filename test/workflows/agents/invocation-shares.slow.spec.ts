/**
 * Agents of one account that hang delay neither its other agents, its top-ups nor the invocations of other
 * accounts.
 */
import assert from 'node:assert/strict';
import { InvocationReply } from '../../../src/schemas/invocations.ts';
import { createTestAccount } from '../../support/accounts.ts';
import { bodyOf, call } from '../../support/http.ts';
import { openCheckout, pay, topUpsOf } from '../../support/payments.ts';
import { until } from '../../support/stack.ts';
import {
  openAgentHarness,
  type AgentHarness,
  type Invocation,
} from '../../support/agent-harness.ts';

/** More than one account's share of the places for all, which is 100. */
const BEYOND_SHARE = 110;
/** More than that share and the places of busy accounts, which are 100 too. */
const HANGING = 210;
const CALLED = 200;

describe('invocations of agents that hang', () => {
  let harness: AgentHarness;

  before(async () => {
    // Calls last longer than the test, so none gives its place back meanwhile.
    harness = await openAgentHarness({ AGENT_TIMEOUT_MS: '600000', AGENT_GRACE_MS: '0' });
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
