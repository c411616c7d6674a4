/** The prose of the API reference for approvals. */
import type { Operation } from './operation.ts';

export const APPROVAL_OPERATIONS = {
  createApproval: {
    tag: 'Approvals',
    summary: 'Ask for an approval',
    description:
      'Asks the owner of the account about a call that a budget or the balance refuses: with a spend key or consumer key ' +
      'as its holder, with a developer key and `apiKey` on behalf of the caller. The service decides by itself what ' +
      'refuses the call now. The owner gets a mail with a link to the answer. The same question returns the same ' +
      'approval, with 200, while it is pending, while `once` is not used, and for an hour after a denial.',
  },
  listApprovals: {
    tag: 'Approvals',
    summary: 'List approvals',
    description:
      "Returns approvals, newest first. The owner and consumer keys see all of the account's; a spend key those that it " +
      'asked for, and with `mayDelegate` those of the budgets below its own.',
  },
  getApproval: {
    tag: 'Approvals',
    summary: 'Get an approval, or wait for it',
    description:
      'Returns the approval. With `wait`, the reply comes when the owner has decided, or when the time is over: within ' +
      'two seconds of the decision, and not before the next charge is certain to see it.',
  },
  decideApproval: {
    tag: 'Approvals',
    summary: 'Decide an approval',
    description:
      'Answers as the owner: with a consumer key or in the console. A spend key whose budget has `mayDelegate` decides for ' +
      'the budgets below its own, and never for itself. The first answer wins; the same answer again returns the same ' +
      'approval. A `top_up` ends the approval once the balance covers the call.',
  },
} as const satisfies Record<string, Operation>;
