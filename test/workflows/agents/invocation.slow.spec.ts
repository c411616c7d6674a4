/** An invocation's workflow: the agent is called until it answers, and the result is kept and shown. */
import assert from 'node:assert/strict';
import { createHmac, hash } from 'node:crypto';
import { Farebox } from '@farebox/client';
import { pino } from 'pino';
import { uuidOf, wireId } from '../../../src/domain/ids.ts';
import { requestInvocation } from '../../../src/invocations/request-invocation.ts';
import { Semaphore } from '../../../src/invocations/semaphore.ts';
import { InvocationReply, InvocationReceiptReply } from '../../../src/schemas/invocations.ts';
import { ReceiptKeysReply, VerifyReply } from '../../../src/schemas/receipts.ts';
import type { InvocationProgress } from '../../../workflows/messages.ts';
import { acceptedUpdates } from '../../support/accepted-updates.ts';
import { echo, methodsOf, sendJson, taskAgent } from '../../support/agents.ts';
import { bodyOf, call } from '../../support/http.ts';
import { keptPool } from '../../support/kept-pools.ts';
import { until } from '../../support/stack.ts';
import {
  openAgentHarness,
  type AgentHarness,
  type Invocation,
} from '../../support/agent-harness.ts';

describe('an invocation', () => {
  let harness: AgentHarness;

  before(async () => {
    harness = await openAgentHarness();
  });
  after(() => harness.close());

  const progressOf = (id: string) =>
    harness.workflow('invocation', id).query<InvocationProgress>('status');

  async function verify(receipt: string) {
    const { developerKey: key } = harness.account;
    const body = { receipt };
    const answer = await call(harness.stack.api, 'POST', '/v1/receipts/verify', { key, body });
    return bodyOf(answer, 200, VerifyReply);
  }

  const client = () =>
    new Farebox({ secretKey: harness.account.developerKey, baseUrl: harness.stack.api.url });

  async function receiptOf({ id }: Invocation) {
    return bodyOf(await harness.get(`/receipts/${id}`), 200, InvocationReceiptReply);
  }

  /** In the state of the answer, for which the request waits as long as it takes. */
  async function requested(targetAgentId: string, payload: object) {
    const database = await keptPool(harness.stack.database.url);
    const { temporal } = harness;
    const deps = { database, temporal, starts: new Semaphore(1), log: pino({ level: 'silent' }) };
    const { id } = await harness.grant(targetAgentId);
    const grantId = uuidOf('grant', id) ?? '';
    const { rows } = await harness.sql.query<{ accountId: string }>(
      'select account_id as "accountId" from farebox.grants where id = $1',
      [grantId],
    );
    const request = {
      accountId: rows[0]?.accountId ?? '',
      grantId,
      targetAgentId,
      capability: 'translate',
      payloadText: JSON.stringify(payload),
      idempotencyKey: undefined,
      isCallable: true,
      requestHash: hash('sha256', 'any'),
      receiptKey: 1,
    };
    const result = await requestInvocation(deps, request, performance.now() + 180_000);
    assert.ok(result.kind === 'admitted', result.kind);
    return result.invocation;
  }

  it('returns the agent’s answer, within the request', async () => {
    const agent = await harness.agent('echo');
    // Over HTTP, a busy machine may answer that it continues.
    const invocation = await requested('echo', { to: 'fr' });
    assert.equal(invocation.status, 'succeeded');
    const { id, grantId, createdAt, completedAt, ...rest } = await harness.invocationNow(
      wireId('invocation', invocation.id),
    );
    const seen = agent.calls.find(({ headers }) => headers['idempotency-key'] === id);
    const sent = { invocationId: id, callerId: 'caller', capability: 'translate' };
    assert.deepEqual(seen?.body, { ...sent, payload: { to: 'fr' } });
    assert.deepEqual(rest, {
      status: 'succeeded',
      targetAgentId: 'echo',
      capability: 'translate',
      attempts: 1,
      result: { echo: seen?.body },
    });
    assert.ok(Date.parse(completedAt ?? '') >= Date.parse(createdAt));
    assert.equal((await harness.grantNow(grantId)).status, 'used');
  });

  it('returns the same answer for the same idempotency key, and calls the agent once', async () => {
    const agent = await harness.agent('keyed');
    const { id: grantId } = await harness.grant('keyed');
    const body = { targetAgentId: 'keyed', grantId, capability: 'c', payload: {} };
    const ask = () => harness.post('/invoke', body, { 'idempotency-key': 'once' });
    const first = await ask();
    const done = await harness.ended(bodyOf(first, first.status, InvocationReply).id);
    const again = await ask();
    assert.deepEqual(bodyOf(again, 200, InvocationReply), done);
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
    assert.equal(agent.calls.length, 1);
  });

  it('is answered in two seconds while the agent takes longer, and ends by itself', async () => {
    const { promise: mayAnswer, resolve: letAnswer } = Promise.withResolvers<void>();
    await harness.agent('slow', async (seen, response, count) => {
      // Later attempts too, or the invocation might end before the test has seen that it runs.
      await mayAnswer;
      await echo(seen, response, count);
    });
    const { id, status } = await harness.invoke('slow');
    // On a busy machine the workflow may not have started within the two seconds.
    assert.ok(status === 'pending' || status === 'running', status);
    await until(async () => (await harness.invocationNow(id)).status === 'running');
    letAnswer();
    assert.equal((await harness.ended(id)).status, 'succeeded');
  });

  it('survives an outage of its agent, and shows the last error until the agent is back', async () => {
    const agent = await harness.agent('down');
    await agent.stop();
    const { id } = await harness.invoke('down');
    const failing = await until(async () => {
      const now = await harness.invocationNow(id);
      return now.attempts >= 2 && now.lastError !== undefined && now;
    });
    const lastError = {
      code: 'agent_unavailable',
      message: 'The connection failed: ECONNREFUSED.',
    };
    assert.deepEqual([failing.status, failing.lastError], ['running', lastError]);
    await until(async () => (await harness.detailsOf('invocation', id)).includes('ECONNREFUSED'));
    const back = await harness.agent('down');
    const done = await harness.ended(id);
    assert.equal(done.status, 'succeeded');
    assert.ok(done.attempts >= 3);
    assert.equal(done.lastError, undefined);
    assert.deepEqual([...back.effects], [id]);
  });

  it('is stuck after five failures, found by a saved query, and an operator can retry it now', async () => {
    let isUp = false;
    await harness.agent('stuck', (seen, response, count) =>
      isUp ? echo(seen, response, count) : void response.writeHead(503).end(),
    );
    const { id } = await harness.invoke('stuck');
    const handle = harness.workflow('invocation', id);
    await until(() => handle.describe().catch(() => undefined));
    // In place of waiting for the intervals.
    await until(async () => {
      await handle.executeUpdate('retry');
      return (await progressOf(id)).stuck;
    });
    await until(() =>
      harness.isFound('invocation', id, 'Stuck = true and InvocationStatus = "running"'),
    );
    assert.match(await harness.detailsOf('invocation', id), /\*\*Stuck\*\*.*It answered 503/s);
    isUp = true;
    const { status, stuck } = await handle.executeUpdate<InvocationProgress, []>('retry');
    assert.deepEqual([status, stuck], ['succeeded', null]);
    assert.equal((await harness.invocationNow(id)).status, 'succeeded');
    await until(() =>
      harness.isFound('invocation', id, 'InvocationStatus = "succeeded" and Stuck is null'),
    );
  });

  it('takes no update for a repeated request, so that operators can send theirs', async () => {
    await harness.agent('failing', (_, response) => void response.writeHead(503).end());
    const { id: grantId } = await harness.grant('failing');
    const body = { targetAgentId: 'failing', grantId, capability: 'c', payload: {} };
    const ask = async () => {
      const answer = await harness.post('/invoke', body, { 'idempotency-key': 'repeated' });
      return bodyOf(answer, 202, InvocationReply).id;
    };
    const id = await ask();
    await until(async () => (await harness.invocationNow(id)).attempts >= 2);
    for (let times = 0; times < 5; times += 1) assert.equal(await ask(), id);
    assert.ok((await acceptedUpdates(harness.workflow('invocation', id))) <= 1);
    await harness.workflow('invocation', id).cancel();
    await harness.ended(id);
  });

  it('waits as long as a busy agent asks', async () => {
    const seenAt: number[] = [];
    await harness.agent('busy', (seen, response, count) => {
      seenAt.push(performance.now());
      if (count > 1) return echo(seen, response, count);
      response.writeHead(429, { 'retry-after': '4' }).end();
    });
    const { id } = await harness.invoke('busy');
    assert.equal((await harness.ended(id)).status, 'succeeded');
    // Timers of different clocks may differ by a little.
    assert.ok((seenAt[1] ?? 0) - (seenAt[0] ?? 0) > 3_900);
  });

  const failures: readonly (readonly [what: string, status: number, body: string, code: string])[] =
    [
      ['a refusal', 422, '{"error":"no such language"}', 'agent_refused'],
      ['an answer that is not JSON', 200, 'Hello', 'invalid_answer'],
      ['an answer of more than a megabyte', 200, `"${'x'.repeat(1_000_000)}"`, 'answer_too_large'],
    ];
  for (const [n, [what, status, body, code]] of failures.entries()) {
    it(`fails at once on ${what}, and is not retried`, async () => {
      const agent = await harness.agent(`failing-${n}`, (_, response) => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(body);
      });
      const { id, ...failed } = await harness.outcomeOf(`failing-${n}`);
      assert.deepEqual(
        [failed.status, failed.error?.code, failed.attempts, 'result' in failed],
        ['failed', code, 1, false],
      );
      if (status === 422) assert.match(failed.error?.message ?? '', /422.*no such language/);
      // Temporal keeps only our own words.
      const result = await harness.workflow('invocation', id).result();
      assert.doesNotMatch(JSON.stringify(result), /language|Hello|xxx/);
      assert.equal(agent.calls.length, 1);
    });
  }

  it('fails without another call when the agent has since been registered with a protocol that cannot be invoked', async () => {
    await harness.agent('odd', (_, response) => void response.writeHead(500).end());
    const { id } = await harness.invoke('odd');
    await until(async () => (await harness.invocationNow(id)).lastError !== undefined);
    const agent = await harness.agent('odd', echo, 'acp');
    const { status, error } = await harness.ended(id);
    assert.deepEqual([status, error?.code], ['failed', 'protocol_not_supported']);
    assert.deepEqual(agent.calls, []);
  });

  it('fails when an operator cancels it by Temporal’s own means', async () => {
    await harness.agent('away', (_, response) => void response.writeHead(500).end());
    const { id } = await harness.invoke('away');
    await until(async () => (await harness.invocationNow(id)).lastError !== undefined);
    await harness.workflow('invocation', id).cancel();
    const { status, error } = await harness.ended(id);
    assert.deepEqual([status, error?.code], ['failed', 'canceled']);
    assert.match(error?.message ?? '', /operator.*It answered 500/);
  });

  it('shows its agent and account, and how it ended', async () => {
    await harness.agent('shown');
    const { id } = await harness.invoke('shown');
    const query =
      'AgentId = "shown" and AccountId starts_with "acct_" and ' +
      'InvocationStatus = "succeeded" and ExecutionStatus = "Completed" and WaitingFor is null';
    await until(() => harness.isFound('invocation', id, query));
    const { staticSummary } = await harness.workflow('invocation', id).describe();
    assert.equal(await staticSummary(), 'Invocation of shown');
    const details = await harness.detailsOf('invocation', id);
    assert.match(details, /Ended after 1 attempt: \*\*succeeded\*\*/);
    assert.match(details, /For operators: starts the next attempt now/);
  });

  describe('has a receipt', () => {
    it('of the request and the answer, which is valid', async () => {
      await harness.agent('receipted');
      const invocation = await harness.outcomeOf('receipted', { text: 'Hello', to: 'fr' });
      const { receipt, invocationId, ...said } = await receiptOf(invocation);
      const { grantId, createdAt, completedAt } = invocation;
      const asked = {
        targetAgentId: 'receipted',
        grantId,
        capability: 'translate',
        payload: { text: 'Hello', to: 'fr' },
      };
      assert.equal(invocationId, invocation.id);
      assert.deepEqual(said, {
        developerId: harness.account.developerId,
        callerId: 'caller',
        targetAgentId: 'receipted',
        grantId,
        capability: 'translate',
        status: 'succeeded',
        requestSha256: hash('sha256', JSON.stringify(asked)),
        resultSha256: hash('sha256', JSON.stringify(invocation.result)),
        createdAt,
        completedAt,
      });
      assert.equal((await receiptOf(invocation)).receipt, receipt);
      const check = await client().verifyReceipt(receipt);
      assert.deepEqual(check, { valid: true, invocation: { id: invocation.id, ...said } });
      assert.deepEqual(await verify(receipt), {
        valid: true,
        recorded: true,
        keyId: '1',
        invocation: { id: invocation.id, ...said },
      });
    });

    it('also when it failed', async () => {
      await harness.agent('refusing', (_, response) => sendJson(response, 'no', 400));
      const { receipt, status, resultSha256 } = await receiptOf(
        await harness.outcomeOf('refusing'),
      );
      assert.deepEqual([status, resultSha256], ['failed', null]);
      assert.equal((await verify(receipt)).invocation?.status, 'failed');
    });

    it('that is invalid when its developer signs something that never happened', async () => {
      await harness.agent('boasted');
      const { receipt } = await receiptOf(await harness.outcomeOf('boasted'));
      const { developerKey: key } = harness.account;
      const answer = await call(harness.stack.api, 'GET', '/v1/receipts/keys', { key });
      const secret = bodyOf(answer, 200, ReceiptKeysReply).keys[0]?.key ?? '';
      const [algorithm, id, payload = ''] = receipt.split('.');
      const said = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object;
      for (const [changes, valid] of [
        [{}, true],
        [{ callerId: 'somebody else' }, false],
        [{ id: `inv_${'0'.repeat(32)}` }, false],
      ] as const) {
        const words = Buffer.from(JSON.stringify({ ...said, ...changes })).toString('base64url');
        const signed = `${algorithm}.${id}.${words}`;
        const mac = createHmac('sha256', Buffer.from(secret, 'base64url')).update(signed);
        const checked = await verify(`${signed}.${mac.digest('base64url')}`);
        assert.deepEqual([checked.keyId, checked.valid, checked.recorded], ['1', valid, valid]);
      }
    });

    it('that is invalid with a changed character', async () => {
      await harness.agent('forged');
      const { receipt } = await receiptOf(await harness.outcomeOf('forged'));
      for (const index of [12, 14, 100, 400, receipt.length - 5]) {
        const other = receipt[index] === 'A' ? 'B' : 'A';
        const forged = receipt.slice(0, index) + other + receipt.slice(index + 1);
        const nothing = { valid: false, recorded: false, keyId: null, charge: null };
        assert.deepEqual(await verify(forged), nothing);
        assert.deepEqual(await client().verifyReceipt(forged), { valid: false, charge: null });
      }
    });
  });
});

describe('an invocation whose attempts may take minutes', () => {
  let harness: AgentHarness;

  before(async () => {
    harness = await openAgentHarness({ AGENT_TIMEOUT_MS: '160000' });
  });
  after(() => harness?.close());

  it('waits for the whole attempt before it tells an operator that no worker has taken it', async () => {
    const { promise: mayAnswer, resolve: letAnswer } = Promise.withResolvers<void>();
    const agent = await harness.agent('patient', async (seen, response, count) => {
      await mayAnswer;
      await echo(seen, response, count);
    });
    const { id } = await harness.invoke('patient');
    await until(() => agent.calls.length > 0);
    const handle = harness.workflow('invocation', id);
    const retried = handle.executeUpdate<InvocationProgress, []>('retry');
    const history = async () => (await handle.fetchHistory()).events ?? [];
    const waitSeconds = await until(async () => {
      const timers = (await history()).map((event) => event.timerStartedEventAttributes);
      return timers.find((timer) => timer != null)?.startToFireTimeout?.seconds;
    });
    const attempts = (await history()).map((event) => event.activityTaskScheduledEventAttributes);
    const attempt = attempts.find((step) => step?.activityType?.name === 'callAgent');
    assert.ok(Number(waitSeconds) > Number(attempt?.startToCloseTimeout?.seconds));
    letAnswer();
    const { status, waitingFor } = await retried;
    assert.deepEqual([status, waitingFor], ['succeeded', null]);
  });
});

describe('an invocation whose agent takes longer than an attempt', () => {
  let harness: AgentHarness;

  before(async () => {
    harness = await openAgentHarness({ AGENT_TIMEOUT_MS: '5000' });
  });
  after(() => harness?.close());

  it('is retried after its agent hung', async () => {
    const agent = await harness.agent('hung', (seen, response, count) =>
      count === 1 ? undefined : echo(seen, response, count),
    );
    const { id } = await harness.invoke('hung');
    const done = await harness.ended(id);
    assert.equal(done.status, 'succeeded');
    assert.ok(done.attempts >= 2);
    assert.deepEqual([...agent.effects], [id]);
  });

  it('sends one message to an A2A agent whose task takes longer than an attempt', async () => {
    let isDone = false;
    const agent = await harness.agent(
      'thorough',
      taskAgent(() => isDone),
      'a2a',
    );
    const { id } = await harness.invoke('thorough');
    const waiting = await until(async () => {
      const now = await harness.invocationNow(id);
      return now.attempts >= 3 && now;
    });
    assert.equal(waiting.lastError?.message, 'Its task is not done yet.');
    isDone = true;
    const { status, result } = await harness.ended(id);
    assert.deepEqual([status, (result as { id: string }).id], ['succeeded', 'task-1']);
    assert.equal(methodsOf(agent).filter((method) => method === 'SendMessage').length, 1);
  });
});
