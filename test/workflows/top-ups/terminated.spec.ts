/**
 * A workflow that was terminated, by an operator or with its server, or that ended before the restored state
 * of its row.
 */
import assert from 'node:assert/strict';
import { InvocationReply } from '../../../src/schemas/invocations.ts';
import { echo, type TestAgent } from '../../support/agents.ts';
import { bodyOf } from '../../support/http.ts';
import { startWorker, until, type Server } from '../../support/stack.ts';
import { openAgentHarness, type AgentHarness } from '../../support/agent-harness.ts';

describe('a workflow that is gone', () => {
  let harness: AgentHarness;
  let isUp: boolean;

  before(async () => {
    harness = await openAgentHarness();
  });
  beforeEach(() => (isUp = false));
  after(() => harness.close());

  const flakyAgent = (id: string): Promise<TestAgent> =>
    harness.agent(id, (seen, response, count) =>
      isUp ? echo(seen, response, count) : void response.writeHead(503).end(),
    );

  async function terminate(workflow: 'grant' | 'invocation', id: string): Promise<void> {
    const handle = harness.workflow(workflow, id);
    await until(() => handle.describe().catch(() => undefined));
    await handle.terminate();
    await until(async () => (await handle.describe()).status.name === 'TERMINATED');
  }

  /** In place of waiting: a relay sweeps when it starts. */
  async function sweepLater(change: string, id: string): Promise<Server> {
    await harness.sql.query(change, [id.slice('inv_'.length)]);
    return startWorker({ env: harness.stack.env });
  }

  it('of an invocation is started again by a relay, when nothing is heard of it', async () => {
    const agent = await flakyAgent('ended');
    const { id } = await harness.invoke('ended');
    await terminate('invocation', id);
    isUp = true;
    const worker = await sweepLater(
      "update farebox.invocations set heard_at = now() - interval '1 hour' where id = $1",
      id,
    );
    try {
      const { status, attempts } = await harness.ended(id);
      assert.deepEqual([status, attempts], ['succeeded', agent.calls.length]);
      assert.deepEqual([...agent.effects], [id]);
    } finally {
      await worker.stop();
    }
  });

  it('of an invocation is started again when its idempotency key is sent again', async () => {
    const agent = await flakyAgent('asked-again');
    const { id: grantId } = await harness.grant('asked-again');
    const body = { targetAgentId: 'asked-again', grantId, capability: 'c', payload: {} };
    const ask = () => harness.post('/invoke', body, { 'idempotency-key': 'terminated' });
    const { id } = bodyOf(await ask(), 202, InvocationReply);
    await terminate('invocation', id);
    isUp = true;
    const again = await ask();
    assert.equal(bodyOf(again, again.status, InvocationReply).id, id);
    assert.equal((await harness.ended(id)).status, 'succeeded');
    assert.deepEqual([...agent.effects], [id]);
  });

  it('of an invocation that has ended is not started again', async () => {
    isUp = true;
    await flakyAgent('done');
    const { id } = await harness.invoke('done');
    await harness.ended(id);
    await harness.workflow('invocation', id).result();
    const { runId } = await harness.workflow('invocation', id).describe();
    await harness.sql.query(
      `insert into farebox.outbox (topic, subject_id) values ('invocation', $1)`,
      [id.slice('inv_'.length)],
    );
    await until(async () => {
      const { rowCount } = await harness.sql.query('select from farebox.outbox');
      return rowCount === 0;
    });
    assert.equal((await harness.workflow('invocation', id).describe()).runId, runId);
  });

  it('of a completed invocation is started again when its row was restored to an earlier state', async () => {
    isUp = true;
    const agent = await flakyAgent('restored');
    const { id } = await harness.invoke('restored');
    await harness.ended(id);
    await harness.workflow('invocation', id).result();
    const worker = await sweepLater(
      `update farebox.invocations set status = 'pending', attempts = 0, result = null, result_hash = null,
        ended_at = null, heard_at = now() - interval '1 hour' where id = $1`,
      id,
    );
    try {
      assert.equal((await harness.ended(id)).status, 'succeeded');
      assert.deepEqual([...agent.effects], [id]);
    } finally {
      await worker.stop();
    }
  });

  it('of a grant leaves no grant active in its row after its expiry', async () => {
    await flakyAgent('granted');
    const { id } = await harness.grant('granted');
    await until(() => harness.isFound('grant', id, 'ExecutionStatus = "Running"'));
    await terminate('grant', id);
    const worker = await sweepLater(
      "update farebox.grants set expires_at = now() - interval '1 hour' where id = $1",
      id,
    );
    try {
      await until(async () => {
        const { rows } = await harness.sql.query<{ status: string }>(
          'select status from farebox.grants where id = $1',
          [id.slice('gnt_'.length)],
        );
        return rows[0]?.status === 'expired';
      });
      assert.equal((await harness.grantNow(id)).status, 'expired');
    } finally {
      await worker.stop();
    }
  });

  it('of a grant starts again when the grant is used up, and shows it', async () => {
    isUp = true;
    await flakyAgent('used-up');
    const { id } = await harness.grant('used-up');
    await until(() => harness.isFound('grant', id, 'ExecutionStatus = "Running"'));
    await terminate('grant', id);
    const body = { targetAgentId: 'used-up', grantId: id, capability: 'c', payload: {} };
    assert.ok((await harness.post('/invoke', body)).status < 300);
    await until(() => harness.isFound('grant', id, 'GrantStatus = "used"'));
  });
});
