/** Each path that an approval can take, for record.ts. */
import { decide } from '../support/approval-requests.ts';
import type { ApprovalHarness } from '../support/approval-harness.ts';
import { until } from '../support/stack.ts';

/** Each runs one to its end and returns the id of its workflow. */
export const APPROVAL_PATHS: Readonly<
  Record<string, (harness: ApprovalHarness) => Promise<string>>
> = {
  async 'approval-once'(harness) {
    const id = await asked(harness);
    await decide(harness.stack.api, harness.account.consumerKey, id, 'once');
    return `approval/${id}`;
  },

  async 'approval-decided-by-update'(harness) {
    const id = await asked(harness);
    const handle = harness.workflow(id);
    const update = (body: object) => handle.executeUpdate('decide', { args: [body] });
    await update({ decision: 'raise', limit: 0.5 }).catch(() => {});
    await update({ decision: 'deny' });
    return `approval/${id}`;
  },

  async 'approval-expired'(harness) {
    const { spendKey } = await harness.budget();
    const { id } = await harness.ask(spendKey);
    await harness.sql.query(
      `update farebox.approvals set expires_at = now() + interval '1 second' where id = $1`,
      [id.slice('apr_'.length)],
    );
    await until(() => harness.isFound(id, 'ApprovalStatus = "expired"'));
    return `approval/${id}`;
  },
};

/** Mailed, and waiting. */
async function asked(harness: ApprovalHarness): Promise<string> {
  const { spendKey } = await harness.budget();
  const approval = await harness.ask(spendKey);
  await harness.mailAbout(approval);
  await until(() => harness.isFound(approval.id, 'ApprovalStatus = "pending"'));
  return approval.id;
}
