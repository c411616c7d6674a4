/** A grant's workflow: it runs and shows the grant as long as it is active. The row decides in every case. */
import assert from 'node:assert/strict';
import { openAgentHarness, type AgentHarness } from '../../support/agent-harness.ts';
import { soonExpiring } from '../../support/soon-expiring.ts';
import { until } from '../../support/stack.ts';

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();

describe('the workflow of a grant', () => {
  let harness: AgentHarness;

  before(async () => {
    harness = await openAgentHarness();
    await harness.agent('echo');
  });
  after(() => harness.close());

  const endOf = (id: string): Promise<{ status: string; uses: number }> =>
    harness.workflow('grant', id).result();
  const storedStatus = async (id: string): Promise<string | undefined> => {
    const { rows } = await harness.sql.query<{ status: string }>(
      'select status from farebox.grants where id = $1',
      [id.slice('gnt_'.length)],
    );
    return rows[0]?.status;
  };

  it('shows an active grant with its agent and account', async () => {
    const { id } = await harness.grant('echo', { type: 'session', expiresAt: inMs(3_600_000) });
    const query = 'GrantStatus = "active" and AgentId = "echo" and AccountId starts_with "acct_"';
    await until(() => harness.isFound('grant', id, query));
    const { staticSummary, status } = await harness.workflow('grant', id).describe();
    assert.equal(await staticSummary(), 'Grant, session, for echo');
    assert.equal(status.name, 'RUNNING');
    const details = await until(async () => {
      const text = await harness.detailsOf('grant', id);
      return text.includes('**active**') && text;
    });
    assert.match(details, /"description":"The grant is used up/);
    const view = await harness.workflow('grant', id).query('status');
    assert.deepEqual(view, { status: 'active', uses: 0 });
  });

  it('records that the grant has expired when it has', async () => {
    const { id, expiresAt } = await soonExpiring((expires) =>
      harness.grant('echo', { expiresAt: expires }),
    );
    await until(() =>
      harness
        .workflow('grant', id)
        .describe()
        .catch(() => undefined),
    );
    assert.deepEqual(await endOf(id), { status: 'expired', uses: 0 });
    assert.ok(Date.now() >= Date.parse(expiresAt));
    assert.equal(await storedStatus(id), 'expired');
    await until(() => harness.isFound('grant', id, 'GrantStatus = "expired"'));
  });

  it('ends at once when the grant is revoked', async () => {
    const { id } = await harness.grant('echo');
    await until(() => harness.isFound('grant', id, 'ExecutionStatus = "Running"'));
    await harness.post(`/grant/${id}/revoke`);
    assert.deepEqual(await endOf(id), { status: 'revoked', uses: 0 });
    assert.match(await harness.detailsOf('grant', id), /\*\*revoked\*\* after 0 uses/);
  });

  it('ends at once when the grant is used up, and not before', async () => {
    const { id } = await harness.grant('echo', { type: 'limited', maxUses: 2 });
    await until(() => harness.isFound('grant', id, 'ExecutionStatus = "Running"'));
    const body = { targetAgentId: 'echo', grantId: id, capability: 'c', payload: {} };
    assert.ok((await harness.post('/invoke', body)).status < 300);
    const { status } = await harness.workflow('grant', id).describe();
    assert.equal(status.name, 'RUNNING');
    assert.equal((await harness.grantNow(id)).status, 'active');
    assert.ok((await harness.post('/invoke', body)).status < 300);
    assert.deepEqual(await endOf(id), { status: 'used', uses: 2 });
    const { status: now, uses } = await harness.grantNow(id);
    assert.deepEqual([now, uses], ['used', 2]);
  });

  it('is not needed for the grant to be valid or to end', async () => {
    const { id } = await harness.grant('echo', { type: 'session', expiresAt: inMs(3_600_000) });
    await until(() => harness.isFound('grant', id, 'ExecutionStatus = "Running"'));
    await harness.workflow('grant', id).terminate();
    const body = { targetAgentId: 'echo', grantId: id, capability: 'c', payload: {} };
    assert.ok((await harness.post('/invoke', body)).status < 300);
    await harness.sql.query('update farebox.grants set expires_at = now() where id = $1', [
      id.slice('gnt_'.length),
    ]);
    await until(async () => (await harness.grantNow(id)).status === 'expired');
    assert.equal((await harness.post('/invoke', body)).status, 409);
  });

  it('leaves no notice behind', async () => {
    await until(async () => {
      const { rows } = await harness.sql.query<{ count: string }>(
        'select count(*) from farebox.outbox',
      );
      return rows[0]?.count === '0';
    });
  });
});
