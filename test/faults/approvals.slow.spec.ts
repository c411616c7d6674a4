/**
 * API and worker are killed, and the connection to Temporal is cut, while an agent waits for its owner:
 * nothing is lost.
 */
import assert from 'node:assert/strict';
import {
  ask,
  decide,
  showApproval,
  tryDecide,
  untilDecided,
} from '../support/approval-requests.ts';
import { approvalHarnessOf, type ApprovalHarness } from '../support/approval-harness.ts';
import { proveBooks } from '../support/books.ts';
import { spend } from '../support/budget-requests.ts';
import { assertError } from '../support/http.ts';
import {
  farebox,
  startApiProcess,
  startProcesses,
  startWorkerProcess,
  until,
  type ServerProcess,
} from '../support/stack.ts';

/** By the saved card. The balance of the account was opened by hand. */
const TOP_UPS = `select t.status, t.completed_at from farebox.top_ups t join farebox.accounts a on a.id = t.account_id
  where a.email = $1 and t.method = 'direct'`;

describe('a pending approval, while processes are killed', () => {
  let harness: ApprovalHarness;
  let api: ServerProcess;
  let worker: ServerProcess;

  before(async () => {
    const stack = await startProcesses({ env: { DEV_MAIL: 'true' } });
    ({ api, worker } = stack);
    harness = await approvalHarnessOf(stack);
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
    const lonely = await startApiProcess({
      env: { ...stack.env, TEMPORAL_ADDRESS: '127.0.0.1:9' },
    });
    const asking = await harness.ask(spendKey, {}, lonely);
    const waiting = untilDecided(lonely, spendKey, asked.id);
    await decide(lonely, account.consumerKey, asked.id, 'once');
    assert.equal((await waiting).status, 'approved');
    assert.equal((await spend(lonely, account, spendKey, asked.amount)).status, 201);
    await kill(lonely);

    // The new processes tell Temporal what happened without it.
    [api, worker] = await Promise.all([
      startApiProcess({ env: stack.env }),
      startWorkerProcess({ env: stack.env }),
    ]);
    assert.deepEqual(await harness.workflow(asked.id).result(), {
      status: 'approved',
      decision: 'once',
    });
    await harness.mailAbout(asking);
    const again = untilDecided(api, spendKey, asking.id);
    await decide(api, account.consumerKey, asking.id, 'deny');
    assert.equal((await again).status, 'denied');
    assert.equal((await spend(api, account, spendKey, asking.amount)).status, 402);
    assert.deepEqual(await harness.workflow(asking.id).result(), {
      status: 'denied',
      decision: 'deny',
    });
    await proveBooks(stack.env, { processor: false });
  });

  it('of a balance is answered by a top-up, and the agent continues', async () => {
    const { account, sql } = harness;
    await farebox(['account', 'consent', account.email, '--ceiling', '2000'], harness.stack);
    const { spendKey } = await harness.budget({});
    const asked = await ask(api, account, spendKey, 1_010);
    const waiting = untilDecided(api, spendKey, asked.id);
    await decide(api, account.consumerKey, asked.id, 'top_up', { amount: 25 });
    const { status, decision } = await waiting;
    assert.deepEqual([status, decision], ['approved', 'top_up']);
    assert.equal((await spend(api, account, spendKey, 1_010)).status, 201);
    assert.deepEqual(await harness.workflow(asked.id).result(), { status, decision });
    // The same answer again, and another one.
    const again = await decide(api, account.consumerKey, asked.id, 'top_up', { amount: 25 });
    assert.equal(again.decision, 'top_up');
    const late = await tryDecide(api, account.consumerKey, asked.id, { decision: 'deny' });
    assertError(late, 409, 'approval_closed', undefined, { status });
    assert.equal((await sql.query(TOP_UPS, [account.email])).rowCount, 1);
  });

  it('of a balance survives kills of the worker and the API between the answer and its payment', async () => {
    const { account, sql, stack } = harness;
    const { spendKey } = await harness.budget({});
    const asked = await ask(api, account, spendKey, 1_000);
    await kill(worker);
    const [waiting, deciding] = [
      showApproval(api, spendKey, asked.id, 50),
      decide(api, account.consumerKey, asked.id, 'top_up', { amount: 990 }),
    ].map((answer) => answer.catch((error: unknown) => error));
    await until(async () => (await sql.query(TOP_UPS, [account.email])).rowCount === 2);
    await kill(api);
    for (const cut of [await waiting, await deciding]) assert.ok(cut instanceof Error);

    [api, worker] = await Promise.all([
      startApiProcess({ env: stack.env }),
      startWorkerProcess({ env: stack.env }),
    ]);
    const { status, decision } = await untilDecided(api, spendKey, asked.id);
    assert.deepEqual([status, decision], ['approved', 'top_up']);
    await decide(api, account.consumerKey, asked.id, 'top_up', { amount: 990 });
    assert.equal((await spend(api, account, spendKey, 1_000)).status, 201);
    assert.deepEqual(await harness.workflow(asked.id).result(), { status, decision });
    const { rows } = await sql.query<{ status: string }>(TOP_UPS, [account.email]);
    assert.deepEqual(
      rows.map((topUp) => topUp.status),
      ['completed', 'completed'],
    );
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
    // It came after the one that waits, on a connection of its own.
    await showApproval(api, spendKey, asked.id);
    await api.stop();
    assert.equal((await waiting).status, 'pending');
  });
});

async function kill(server: ServerProcess): Promise<void> {
  server.kill('SIGKILL');
  await server.exited;
}
