/**
 * An operator terminates, cancels, resets or signals the workflow of an approval, a grant, an invocation or a
 * webhook endpoint. The row still ends right, and no workflow outlasts it. Those of top-ups have a test of
 * their own.
 */
import assert from 'node:assert/strict';
import type { WorkflowHandle } from '@temporalio/client';
import { uuidOf } from '../../src/domain/ids.ts';
import { workflowIdIn } from '../../src/domain/task-queues.ts';
import { NewWebhookEndpointReply } from '../../src/schemas/webhook-endpoints.ts';
import { agentHarnessOf, type AgentHarness } from '../support/agent-harness.ts';
import { echo } from '../support/agents.ts';
import { approvalHarnessOf, type ApprovalHarness } from '../support/approval-harness.ts';
import { decide, showApproval } from '../support/approval-requests.ts';
import { proveBooks } from '../support/books.ts';
import { bodyOf, call } from '../support/http.ts';
import { intervene, INTERVENTIONS, type Intervention } from '../support/interventions.ts';
import { startReceiver, type Receiver } from '../support/receiver.ts';
import { startStack, startWorker, until, type Stack } from '../support/stack.ts';

describe('after each intervention of an operator', () => {
  let stack: Stack;
  let approvals: ApprovalHarness;
  let agents: AgentHarness;
  let receiver: Receiver;
  let isUp = false;
  const ids = new Map<string, string>();

  before(async () => {
    stack = await startStack({
      env: { DEV_MAIL: 'true', ALLOW_PRIVATE_ENDPOINTS: 'true', WEBHOOK_RETRY_MS: '100' },
    });
    approvals = await approvalHarnessOf(stack);
    agents = await agentHarnessOf(stack);
    receiver = await startReceiver();
    receiver.respondWith((response) => void response.writeHead(isUp ? 200 : 500).end());
    await agents.agent('flaky', (seen, response, count) =>
      isUp ? echo(seen, response, count) : void response.writeHead(503).end(),
    );
    const { spendKey } = await approvals.budget();
    const asked = new Map<string, string>();
    for (const intervention of INTERVENTIONS) {
      const approval = await approvals.ask(spendKey);
      await approvals.mailAbout(approval);
      asked.set(intervention, approval.id);
    }
    await Promise.all(
      INTERVENTIONS.flatMap((intervention) => [
        begin(`approval, ${intervention}`, asked.get(intervention) ?? '', 'decided'),
        agents.grant('flaky').then(({ id }) => begin(`grant, ${intervention}`, id, 'used')),
        agents.invoke('flaky').then(({ id }) => begin(`invocation, ${intervention}`, id)),
        endpoint().then((id) => begin(`webhooks, ${intervention}`, id, 'changed')),
      ]),
    );
    // Otherwise an attempt that begins before the cancellation arrives could succeed.
    await until(() => isOver('invocation, cancel'));
    isUp = true;
    // In place of waiting: the sweep of a worker that starts finds what is silent or late.
    await approvals.sql.query(
      `update farebox.invocations set heard_at = now() - interval '1 hour'`,
    );
    await approvals.sql.query(
      `update farebox.webhook_deliveries set next_attempt_at = now() - interval '3 minutes' where status = 'waiting'`,
    );
    const worker = await startWorker({ env: stack.env });
    await worker.stop();
  });
  after(async () => {
    await receiver?.stop();
    await agents?.close();
    await approvals?.close();
  });

  async function endpoint(): Promise<string> {
    const { developerKey: key } = approvals.account;
    const body = { url: receiver.url };
    const made = await call(stack.api, 'POST', '/v1/webhook-endpoints', { key, body });
    const { id } = bodyOf(made, 201, NewWebhookEndpointReply);
    await call(stack.api, 'POST', `/v1/webhook-endpoints/${id}/test`, { key });
    return id;
  }

  const workflow = (name: string): WorkflowHandle => {
    const id = ids.get(name);
    assert.ok(id, name);
    const [kind = ''] = name.split(',');
    const { temporal } = approvals;
    return temporal.client.workflow.getHandle(workflowIdIn(temporal, kind, id));
  };
  const isOver = async (name: string) =>
    (await workflow(name).describe()).status.name !== 'RUNNING';

  async function begin(name: string, id: string, signal?: string): Promise<void> {
    ids.set(name, id);
    const handle = workflow(name);
    await until(() => handle.query('status').catch(() => undefined));
    const intervention = name.split(', ')[1] as Intervention;
    if (intervention === 'signal' && signal === undefined) return;
    await intervene(approvals.temporal, handle, intervention, signal ?? '');
  }

  for (const intervention of INTERVENTIONS) {
    it(`${intervention}: an approval is decided by its owner`, async () => {
      const name = `approval, ${intervention}`;
      const { consumerKey } = approvals.account;
      await decide(stack.api, consumerKey, ids.get(name) ?? '', 'once');
      assert.equal(
        (await showApproval(stack.api, consumerKey, ids.get(name) ?? '')).status,
        'approved',
      );
      await until(() => isOver(name));
    });

    it(`${intervention}: a grant is revoked`, async () => {
      const name = `grant, ${intervention}`;
      await agents.post(`/grant/${ids.get(name)}/revoke`);
      assert.equal((await agents.grantNow(ids.get(name) ?? '')).status, 'revoked');
      await until(() => isOver(name));
    });

    it(`${intervention}: an invocation ends`, async () => {
      const name = `invocation, ${intervention}`;
      const { status } = await agents.ended(ids.get(name) ?? '');
      assert.equal(status, intervention === 'cancel' ? 'failed' : 'succeeded');
      await until(() => isOver(name));
    });

    it(`${intervention}: the event of a webhook endpoint arrives`, async () => {
      const name = `webhooks, ${intervention}`;
      const id = ids.get(name) ?? '';
      await until(async () => {
        const { rows } = await approvals.sql.query<{ status: string }>(
          'select status from farebox.webhook_deliveries where endpoint_id = $1',
          [uuidOf('webhookEndpoint', id)],
        );
        return rows.length > 0 && rows.every(({ status }) => status === 'delivered');
      });
      const { developerKey: key } = approvals.account;
      await call(stack.api, 'DELETE', `/v1/webhook-endpoints/${id}`, { key });
      await until(() => isOver(name));
    });
  }

  it('the books are right and nothing waits', async () => {
    await until(
      async () => (await approvals.sql.query('select from farebox.outbox')).rowCount === 0,
    );
    await proveBooks(stack.env, { processor: false });
  });
});
