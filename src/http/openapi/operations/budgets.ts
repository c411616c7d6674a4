/** The prose of the API reference for budgets and spend keys. */
import type { Operation } from '../operation.ts';

export const BUDGET_OPERATIONS = {
  createBudget: {
    tag: 'Budgets',
    summary: 'Create a budget',
    description:
      'Limits what the spend keys of the budget, and of all budgets below it, can spend. Every limit on the path ' +
      'up to the account must have room for a charge. The commit that moves the money checks that, so no budget is ever overspent. ' +
      'A child may have a larger limit than its parent: the parent still refuses. A budget never moves.',
  },
  listBudgets: {
    tag: 'Budgets',
    summary: 'List budgets',
    description:
      'Returns budgets with what they have used and what is left, newest first. A consumer key sees all budgets of ' +
      'the account. A spend key sees its own, and with `mayDelegate` those below it.',
  },
  getBudget: {
    tag: 'Budgets',
    summary: 'Get a budget',
    description: 'Returns a budget with what it has used and what is left, exact at this moment.',
  },
  updateBudget: {
    tag: 'Budgets',
    summary: 'Change a budget',
    description:
      'Changes the fields that you send. If you set a limit below what is used, further charges are refused; ' +
      'earlier charges do not change. A `window` of another unit starts counting at the change. Changes apply everywhere within a second.',
  },
  closeBudget: {
    tag: 'Budgets',
    summary: 'Close a budget',
    description:
      'Ends the budget, all budgets below it and all their keys. You cannot undo this, unless the budget limits a single developer. Developers can still extend open holds, and capture ' +
      'what they reserve, unless you send `releaseHolds`. Closing the budget again changes nothing, but can release open holds later. ' +
      'A budget that limits a single developer is closed by the owner in a session of the console, who can also reopen it: with a key, ' +
      'the request is refused with `session_required`.',
  },
  reopenBudget: {
    tag: 'Budgets',
    summary: 'Reopen the budget of a developer',
    description:
      'Lets a single developer, whose budget was closed, charge consumer keys of the account again: with a daily limit for each ' +
      'developer, within the limits of the budget, which continues to count; otherwise without a limit. It applies everywhere within a ' +
      'second. Spend keys of the budget, all budgets below it and requests for an approval that ended with it stay ended. Reopening an ' +
      'open budget changes nothing. Any other budget is refused with `budget_not_reopenable`.',
  },
  getBudgetUsage: {
    tag: 'Budgets',
    summary: 'Get the usage of a budget',
    description:
      'Returns what the spend keys of the budget, and of all budgets below it, spent: by tool, or with `by` by key, ' +
      'developer or UTC day. Exact at this moment. `from` and `to` are the beginnings of UTC days. Open holds count ' +
      'when they are captured.',
  },
  exportBudgetUsage: {
    tag: 'Budgets',
    summary: 'Download the usage of a budget as CSV',
    description:
      'Returns a row for each spend key, tool, developer and UTC day. Columns: `from`, `keyId`, `keyName`, `tool`, ' +
      '`developerId`, `charges`, `amount`.',
  },
  listBudgetRefusals: {
    tag: 'Budgets',
    summary: 'List refused calls of a budget',
    description:
      'Returns how often developers were refused when they charged the spend keys of the budget, and of all budgets below ' +
      'it, or asked for an approval with them: by key and error code. Revoked and expired keys are included. With a spend key, budgets below its own count only if ' +
      'its own has `mayDelegate`. Farebox keeps these figures for 30 days, by the hour. They may be a few seconds old.',
  },
  createSpendKey: {
    tag: 'Budgets',
    summary: 'Create a spend key',
    description:
      'Returns a key to hand out. Only this response contains the key, and the response to a retry with the same Idempotency-Key. Tools charge a spend key as they charge a consumer key. It can ' +
      'spend what its budget allows and read that budget. It cannot read the balance or the usage, or top up.',
  },
  listSpendKeys: {
    tag: 'Budgets',
    summary: 'List the spend keys of a budget',
    description:
      'Returns the keys of this budget, newest first, including revoked and expired ones.',
  },
} as const satisfies Record<string, Operation>;
