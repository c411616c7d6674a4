/** A stack, an account with a budget that has used its limit, and the views of operators and of the owner's mailbox. */
import { ask, type Approval } from './approval-requests.ts';
import { makeBudget, makeKey } from './budget-requests.ts';
import { startStack, until, type Environment, type Server, type Stack } from './stack.ts';
import { openViews } from './views.ts';

export type ApprovalHarness = Awaited<ReturnType<typeof openApprovalHarness>>;

/** The settings say where mails go. */
export async function openApprovalHarness(env: Environment = { DEV_MAIL: 'true' }) {
  return approvalHarnessOf(await startStack({ env }));
}

/** Over a stack, which it stops at its end. */
export async function approvalHarnessOf(stack: Stack) {
  const views = await openViews(stack, 1_000);
  const { account, sql } = views;
  let asked = 0;

  return {
    ...views,
    /** A budget of $1.00, and a key for it. */
    async budget(settings: object = { limit: 1 }): Promise<{ id: string; spendKey: string }> {
      const { id } = await makeBudget(stack.api, account.consumerKey, { ...settings });
      const { key } = await makeKey(stack.api, account.consumerKey, id);
      return { id, spendKey: key };
    },

    /** A question about a limit, each for another amount. */
    async ask(spendKey: string, changes: object = {}, by: Server = stack.api): Promise<Approval> {
      asked += 1;
      return ask(by, account, spendKey, (100 + asked) / 100, { ...changes });
    },

    workflow: (id: string) => views.workflow('approval', id),
    isFound: (id: string, query: string) => views.isFound('approval', id, query),
    detailsOf: (id: string) => views.detailsOf('approval', id),
    /** The mail about it, once it has been sent. Only with `DEV_MAIL`. */
    mailAbout({ amount }: Approval): Promise<{ subject: string; body: string; recipient: string }> {
      return until(async () => {
        const { rows } = await sql.query<{ subject: string; body: string; recipient: string }>(
          'select subject, body, recipient from console.mails where subject like $1',
          [`Approve a charge of $${amount.toFixed(2)}%`],
        );
        return rows[0];
      });
    },
  };
}
