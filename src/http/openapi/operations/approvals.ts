/** The prose of the API reference for approvals. */
import type { Operation } from '../operation.ts';

export const APPROVAL_OPERATIONS = {
  createApproval: {
    tag: 'Approvals',
    summary: 'Ask for an approval',
    description:
      'Asks the owner of the account about a call that a budget or the balance refuses. Send it with the spend key or ' +
      'consumer key that was refused, or with a secret key and the key of the caller as `apiKey`. Farebox determines ' +
      'what refuses the call now. The owner gets an email with a link to decide. The same request returns the same ' +
      'approval, with 200, while it is pending, while `once` is not used, and for an hour after a denial.',
  },
  listApprovals: {
    tag: 'Approvals',
    summary: 'List approvals',
    description:
      'Returns approvals, newest first. The owner and consumer keys see all approvals of the account; a spend key sees ' +
      'those that it asked for, and with `mayDelegate` those of the budgets below its own.',
  },
  getApproval: {
    tag: 'Approvals',
    summary: 'Get an approval, or wait for it',
    description:
      'Returns the approval. With `wait`, Farebox responds when the owner has decided or the time is up. The response comes within ' +
      'two seconds of the decision, and not before the next charge is certain to see the decision.',
  },
  decideApproval: {
    tag: 'Approvals',
    summary: 'Decide an approval',
    description:
      'Decides as the owner: with a consumer key or in the console. A spend key whose budget has `mayDelegate` decides for ' +
      'the budgets below its own, and never for itself. The first decision counts; the same decision again returns the same ' +
      'approval. A `top_up` ends the approval once the balance covers the call. If the bank wants the payment confirmed, ' +
      'send the cardholder to `sessionUrl`.',
  },
} as const satisfies Record<string, Operation>;
