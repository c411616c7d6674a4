/** The mails of approvals, when the mail server hangs or refuses the owner. */
import assert from 'node:assert/strict';
import { uuidOf } from '../../../src/domain/ids.ts';
import { decide } from '../../support/approval-requests.ts';
import { openApprovalHarness, type ApprovalHarness } from '../../support/approval-harness.ts';
import { startMailServer } from '../../support/mail-server.ts';
import { until } from '../../support/stack.ts';

/** `MAILS_MAX` of a worker. */
const AT_ONCE_MAX = 20;
/** A key may ask for as many. */
const ASKED_BY_EACH = 20;

describe('the mails of approvals', () => {
  let server: Awaited<ReturnType<typeof startMailServer>>;
  let harness: ApprovalHarness;

  before(async () => {
    server = await startMailServer();
    harness = await openApprovalHarness({
      SMTP_URL: server.urlFor('p@ss'),
      MAIL_FROM: 'billing@example.com',
    });
  });
  after(async () => {
    await harness?.close();
    await server?.stop();
  });

  it('wait for a mail server that hangs only in a few places, and are sent once it answers', async () => {
    const greet = server.hang();
    const ids: string[] = [];
    for (const { spendKey } of [await harness.budget(), await harness.budget()]) {
      for (let count = 0; count < ASKED_BY_EACH; count += 1) {
        ids.push((await harness.ask(spendKey)).id);
      }
    }
    for (const id of ids) await until(() => isMailing(id));
    await until(() => server.connectionsMost() >= AT_ONCE_MAX);
    assert.equal(server.connectionsMost(), AT_ONCE_MAX);
    greet();
    await until(() => server.mails.length >= ids.length);
    for (const id of ids) {
      await decide(harness.stack.api, harness.account.consumerKey, id, 'deny');
      assert.equal((await harness.workflow(id).result()).status, 'denied');
    }
  });

  it('are shown to operators as refused when the mail server refuses the owner', async () => {
    server.refuseAll({ code: 550, text: 'no such user' });
    const { spendKey } = await harness.budget();
    const { id } = await harness.ask(spendKey);
    await until(() => harness.isFound(id, 'ApprovalStatus = "pending"'));
    await until(async () => /The mail server refuses/.test(await harness.detailsOf(id)));
  });

  it('are shown to operators as sent when the worker that sent one dies before it can say so', async () => {
    const greet = server.hang();
    const { spendKey } = await harness.budget();
    const { id } = await harness.ask(spendKey);
    await until(() => isMailing(id));
    await harness.sql.query('update farebox.approvals set mailed_at = now() where id = $1', [
      uuidOf('approval', id),
    ]);
    await until(async () => !(await isMailing(id)));
    await until(async () => /The owner was emailed/.test(await harness.detailsOf(id)));
    greet();
  });

  /** Whether its workflow waits for the mail to be sent. */
  async function isMailing(id: string): Promise<boolean> {
    if (!(await harness.isFound(id, 'ApprovalStatus = "pending"'))) return false;
    const { raw } = await harness.workflow(id).describe();
    return raw.pendingActivities?.[0]?.activityType?.name === 'mailApproval';
  }
});
