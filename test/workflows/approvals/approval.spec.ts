/**
 * An approval's workflow: it mails the owner, shows the question to operators, and ends with the row, which
 * decides.
 */
import assert from 'node:assert/strict';
import { WorkflowUpdateFailedError } from '@temporalio/client';
import { noteUnmailedApprovals } from '../../../src/store/approvals/progress.ts';
import { createDatabase } from '../../../src/store/database.ts';
import { ask, decide, showApproval } from '../../support/approval-requests.ts';
import { openApprovalHarness, type ApprovalHarness } from '../../support/approval-harness.ts';
import { proveBooks } from '../../support/books.ts';
import { makeBudget, makeKey, showBudget, spend } from '../../support/budget-requests.ts';
import { endAll } from '../../support/end-all.ts';
import { startWorker, until, type Server } from '../../support/stack.ts';
import { testSideOf } from '../../support/test-mode.ts';

const linkIn = (text: string) => /http:\S+/.exec(text)?.[0] ?? '';
const open = async (url: string) => {
  const response = await fetch(url);
  return { status: response.status, html: await response.text() };
};
const answer = async (link: string, fields: Readonly<Record<string, string>>) => {
  const token = new URL(link).searchParams.get('link') ?? '';
  const response = await fetch(new URL('/approval', link), {
    method: 'POST',
    body: new URLSearchParams({ link: token, ...fields }),
  });
  return { status: response.status, html: await response.text() };
};
const refusalOf = async (update: Promise<unknown>): Promise<string> => {
  try {
    await update;
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError) return String(error.cause?.message);
    throw error;
  }
  return assert.fail('the update was accepted');
};

describe('the workflow of an approval', () => {
  let harness: ApprovalHarness;
  let worker: Server;
  let key: string;
  let budget: string;
  let spendKey: string;

  before(async () => {
    harness = await openApprovalHarness();
    ({ worker } = harness.stack);
    key = harness.account.consumerKey;
    ({ id: budget, spendKey } = await harness.budget());
  });
  after(() =>
    endAll(
      () => proveBooks(harness.stack.env, { processor: false }),
      () => worker.stop(),
      () => harness.close(),
    ),
  );

  it('shows a pending approval to operators, without what others wrote', async () => {
    const { id } = await harness.ask(spendKey, { tool: 'secret tool', reason: 'secret reason' });
    const query =
      'ApprovalStatus = "pending" and WaitingFor = "owner" and ConsumerId starts_with "cns_"';
    await until(() => harness.isFound(id, query));
    const handle = harness.workflow(id);
    const history = JSON.stringify(await handle.fetchHistory());
    assert.ok(!/secret|c2VjcmV0/.test(history), 'the history has the name or the reason');
    await until(async () => /Pending.*The owner was emailed/.test(await harness.detailsOf(id)));
    assert.deepEqual(await handle.query('status'), { status: 'pending', decision: null });
    await decide(harness.stack.api, key, id, 'deny');
    assert.deepEqual(await handle.result(), { status: 'denied', decision: 'deny' });
    await until(() => harness.isFound(id, 'ApprovalStatus = "denied"'));
  });

  it('mails the owner a link that shows the question, escaped, and decides only by its form', async () => {
    const asked = await harness.ask(spendKey, { reason: '<script>alert(1)</script>' });
    const { body, recipient } = await harness.mailAbout(asked);
    assert.equal(recipient, harness.account.email);
    assert.ok(!body.includes('script') && !body.includes('search'), body);
    const link = linkIn(body);
    const { status, html } = await open(link);
    assert.equal(status, 200);
    assert.ok(html.includes('&#60;script&#62;') && !html.includes('<script'), html);
    assert.equal((await showApproval(harness.stack.api, key, asked.id)).status, 'pending');

    assert.equal((await answer(link, { decision: 'top_up' })).status, 400);
    assert.equal((await answer(link, { decision: 'raise', limit: 'much' })).status, 400);
    assert.equal((await answer(link, { decision: 'raise', limit: '0.5' })).status, 400);
    // Bytes of the link are the only authority: neither another approval nor a top-up can be put in.
    const other = await harness.ask(spendKey);
    const otherLink = linkIn((await harness.mailAbout(other)).body);
    assert.equal((await answer(link, { decision: 'once', id: other.id })).status, 200);
    assert.equal((await showApproval(harness.stack.api, key, other.id)).status, 'pending');
    assert.equal((await showApproval(harness.stack.api, key, asked.id)).decision, 'once');

    const late = await answer(link, { decision: 'deny' });
    assert.equal(late.status, 409);
    assert.match(late.html, /Allowed/);
    assert.match((await open(link)).html, /Allowed/);
    const changed = `${otherLink.slice(0, -5)}AAAAA`;
    assert.equal((await open(changed)).status, 404);
    assert.equal((await answer(changed, { decision: 'once' })).status, 404);
    const topUp = new URL(`/top-up${new URL(otherLink).search}`, otherLink);
    assert.equal((await open(topUp.href)).status, 404);
    const denied = await answer(otherLink, { decision: 'deny' });
    assert.match(denied.html, /Denied/);
    assert.equal((await showApproval(harness.stack.api, spendKey, other.id)).status, 'denied');
  });

  it('mails the owner about a call in test mode too, and says so', async () => {
    const { api, database } = harness.stack;
    const test = await testSideOf(api, database.url, harness.account, 10);
    const { id } = await makeBudget(api, test.consumerKey, { limit: 1 });
    const made = await makeKey(api, test.consumerKey, id);
    const asked = await ask(api, test, made.key, 7);
    const { recipient, subject, body } = await harness.mailAbout(asked);
    assert.deepEqual(
      [recipient, subject],
      [harness.account.email, 'Approve a charge of $7.00 in test mode?'],
    );
    assert.match(body, /no real money/);
    const link = linkIn(body);
    assert.match((await open(link)).html, /play money/);
    assert.equal((await answer(link, { decision: 'once' })).status, 200);
    await until(async () => (await spend(api, test, made.key, 7)).status === 201);
  });

  it('raises a limit by the link', async () => {
    const { id, spendKey: mine } = await harness.budget();
    const asked = await harness.ask(mine);
    const link = linkIn((await harness.mailAbout(asked)).body);
    const { status, html } = await answer(link, { decision: 'raise', limit: '12.5' });
    assert.equal(status, 200);
    assert.match(html, /\$12\.50/);
    assert.equal((await showBudget(harness.stack.api, key, id)).limit, 12.5);
    assert.equal((await spend(harness.stack.api, harness.account, mine, 12)).status, 201);
  });

  it('is decided by operators with the update, and refuses a late or unfitting one', async () => {
    const { id } = await harness.ask(spendKey);
    await until(() => harness.isFound(id, 'ApprovalStatus = "pending"'));
    const handle = harness.workflow(id);
    const update = (data: unknown) => handle.executeUpdate('decide', { args: [data] });
    assert.match(await refusalOf(handle.executeUpdate('decide')), /^Send `{"decision": "once"}`/);
    for (const unfit of [null, 'once', {}, { decision: 'yes' }]) {
      assert.match(await refusalOf(update(unfit)), /^Send `{"decision": "once"}`/);
    }
    assert.match(await refusalOf(update({ decision: 'top_up' })), /not a valid decision/);
    assert.match(await refusalOf(update({ decision: 'raise', limit: 0.5 })), /already that high/);
    assert.match(await refusalOf(update({ decision: 'raise' })), /not an answer/);
    const view = await update({ decision: 'once' });
    assert.deepEqual(view, { status: 'approved', decision: 'once' });
    assert.equal((await showApproval(harness.stack.api, key, id)).decision, 'once');
    assert.deepEqual(await handle.result(), { status: 'approved', decision: 'once' });
    assert.equal((await showBudget(harness.stack.api, key, budget)).limit, 1);
  });

  it('mails the owner and takes decisions though its cancellation was requested, before and after the mail', async () => {
    const { stack, temporal } = harness;
    await worker.stop();
    const asked = await harness.ask(spendKey);
    const approvalId = asked.id;
    const { workflowId } = harness.workflow(approvalId);
    const { taskQueue } = temporal;
    await temporal.client.workflow.start('approval', {
      workflowId,
      taskQueue,
      args: [{ approvalId }],
    });
    await harness.workflow(approvalId).cancel();
    worker = await startWorker({ env: stack.env });
    await harness.mailAbout(asked);
    assert.equal((await showApproval(stack.api, key, approvalId)).status, 'pending');
    await harness.workflow(approvalId).cancel();
    const view = { status: 'approved', decision: 'once' };
    const update = (body: object) =>
      harness.workflow(approvalId).executeUpdate('decide', { args: [body] });
    assert.deepEqual(await update({ decision: 'once' }), view);
    assert.deepEqual(await harness.workflow(approvalId).result(), view);
  });

  it('records the expiry, even when it was terminated', async () => {
    const [mine, terminated] = [await harness.ask(spendKey), await harness.ask(spendKey)];
    const ids = [mine, terminated].map(({ id }) => id.slice('apr_'.length));
    await until(async () => {
      const { rows } = await harness.sql.query(
        `select from farebox.approvals where id = any ($1) and begun_at is not null`,
        [ids],
      );
      return rows.length === ids.length;
    });
    await harness.workflow(terminated.id).terminate();
    await harness.sql.query(
      `update farebox.approvals set created_at = created_at - interval '1 day', expires_at = now() where id = any ($1)`,
      [ids],
    );
    await harness.workflow(mine.id).signal('decided');
    assert.deepEqual(await harness.workflow(mine.id).result(), {
      status: 'expired',
      decision: null,
    });
    assert.equal(
      (await showApproval(harness.stack.api, spendKey, terminated.id)).status,
      'expired',
    );
  });

  it('mails the owner though its workflow was terminated before the mail', async () => {
    const { sql, stack } = harness;
    const asked = await harness.ask(spendKey);
    const id = asked.id.slice('apr_'.length);
    await harness.mailAbout(asked);
    await until(async () => {
      const told = 'select from farebox.approvals where id = $1 and mailed_at is not null';
      return (await sql.query(told, [id])).rowCount === 1;
    });
    await harness.workflow(asked.id).terminate();
    await sql.query('delete from console.mails');
    // As it is when the operator was faster than the mail.
    await sql.query(
      `update farebox.approvals set mailed_at = null, begun_at = now() - interval '1 hour' where id = $1`,
      [id],
    );
    const database = await createDatabase(stack.database.url, {
      maxPoolSize: 1,
      onError: () => {},
    });
    try {
      assert.equal(await noteUnmailedApprovals(database, 900_000), 1);
      assert.equal(await noteUnmailedApprovals(database, 900_000), 0, 'not again at once');
    } finally {
      await database.end();
    }
    await harness.mailAbout(asked);
    await decide(stack.api, key, asked.id, 'deny');
    assert.deepEqual(await harness.workflow(asked.id).result(), {
      status: 'denied',
      decision: 'deny',
    });
  });

  it('leaves no notice behind', async () => {
    await until(async () => {
      const { rows } = await harness.sql.query<{ count: string }>(
        `select count(*) from farebox.outbox where topic = 'approval'`,
      );
      return rows[0]?.count === '0';
    });
  });
});
