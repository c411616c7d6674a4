/** API and worker are killed, and the connection to Temporal is cut, while an agent waits for its owner: nothing is lost. */
import assert from 'node:assert/strict';
import { decide, showApproval } from '../support/approval-requests.ts';
import { openApprovalHarness, type ApprovalHarness } from '../support/approval-harness.ts';
import { proveBooks } from '../support/books.ts';
import { spend } from '../support/budget-requests.ts';
import { startApi, startWorker, until, type Server } from '../support/stack.ts';

describe('a pending approval, while processes are killed', () => {
  let harness: ApprovalHarness;
  let api: Server;
  let worker: Server;

  before(async () => {
    harness = await openApprovalHarness();
    ({ api, worker } = harness.stack);
  });
  after(async () => {
    await Promise.all([api?.stop(), worker?.stop()]);
    await harness?.close();
  });

  it('is decided afterwards, and the agent continues', async () => {
    const { account, stack } = harness;
    const { spendKey } = await harness.budget();
    const asked = await harness.ask(spendKey);
    await until(() => harness.isFound(asked.id, 'ApprovalStatus = "pending"'));
    const cut = showApproval(api, spendKey, asked.id, 50).catch((error: unknown) => error);
    await Promise.all([kill(api), kill(worker)]);
    assert.ok((await cut) instanceof Error);

    // Without Temporal: the address is one where nothing listens.
    const lonely = await startApi({ env: { ...stack.env, TEMPORAL_ADDRESS: '127.0.0.1:9' } });
    const asking = await harness.ask(spendKey, {}, lonely);
    const waiting = showApproval(lonely, spendKey, asked.id, 50);
    const decidedAt = Date.now();
    await decide(lonely, account.consumerKey, asked.id, 'once');
    assert.equal((await waiting).status, 'approved');
    assert.ok(Date.now() - decidedAt < 5_000, `told after ${Date.now() - decidedAt} ms`);
    assert.equal((await spend(lonely, account, spendKey, asked.amount)).status, 201);
    await kill(lonely);

    // The new processes tell Temporal what happened without it.
    [api, worker] = await Promise.all([
      startApi({ env: stack.env }),
      startWorker({ env: stack.env }),
    ]);
    assert.deepEqual(await harness.workflow(asked.id).result(), {
      status: 'approved',
      decision: 'once',
    });
    await harness.mailAbout(asking);
    const again = showApproval(api, spendKey, asking.id, 50);
    await decide(api, account.consumerKey, asking.id, 'deny');
    assert.equal((await again).status, 'denied');
    assert.equal((await spend(api, account, spendKey, asking.amount)).status, 402);
    assert.deepEqual(await harness.workflow(asking.id).result(), {
      status: 'denied',
      decision: 'deny',
    });
    await proveBooks(stack.env, { processor: false });
  });

  it('answers requests that wait when the process stops in order', async () => {
    const { spendKey } = await harness.budget();
    const asked = await harness.ask(spendKey, {}, api);
    const waiting = showApproval(api, spendKey, asked.id, 50);
    await until(async () => {
      const { rows } = await harness.sql.query<{ begun: boolean }>(
        'select begun_at is not null as begun from farebox.approvals where id = $1',
        [asked.id.slice('apr_'.length)],
      );
      return rows[0]?.begun;
    });
    await api.stop();
    assert.equal((await waiting).status, 'pending');
  });
});

async function kill(server: Server): Promise<void> {
  server.kill('SIGKILL');
  await server.exited;
}
