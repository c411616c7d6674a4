/** Refusals of budgets: which node, which limit, what is left of it and when it comes back. */
import type { BudgetRefusal } from '../../../charging/budget-rules.ts';
import { ApiError } from '../../../domain/errors.ts';
import type { LimitScope } from '../../../domain/budget.ts';
import { wireId } from '../../../domain/ids.ts';
import { dollarsOf, formatDollars } from '../../../domain/money.ts';

const OF_SCOPE: Readonly<Record<LimitScope, string>> = {
  total: 'in total',
  window: 'in its current window',
  per_call: 'for one call',
  per_lease: 'for one lease',
};

/**
 * In the console, where the owner signs in. Refusals go to tool servers and agents, so their links must not be able to
 * change anything by themselves.
 */
export function approvalsPage(consoleUrl: string): string {
  return `${consoleUrl}/console/approvals`;
}

export function budgetError(
  refusal: Exclude<BudgetRefusal, { kind: 'invalid_api_key' }>,
  consoleUrl: string,
): ApiError {
  const budgetId = wireId('budget', refusal.budgetId);
  switch (refusal.kind) {
    case 'limit_reached': {
      const { scope, resetsAt } = refusal;
      const [limit, remaining] = [refusal.limitMicros, refusal.remainingMicros].map(dollarsOf);
      return new ApiError(
        'spend_limit_reached',
        `The budget allows ${formatDollars(refusal.limitMicros)} ${OF_SCOPE[scope]}; ${formatDollars(refusal.remainingMicros)} is left.`,
        {
          facts: {
            budgetId,
            scope,
            limit: limit ?? 0,
            remaining: remaining ?? 0,
            resetsAt,
            raiseUrl: `${approvalsPage(consoleUrl)}?budget=${budgetId}&scope=${scope}`,
          },
        },
      );
    }
    case 'approval_required': {
      const developerId = wireId('developer', refusal.developerId);
      return new ApiError(
        'approval_required',
        'The owner of this budget has not approved charges by this developer yet.',
        {
          facts: {
            budgetId,
            approvalUrl: `${approvalsPage(consoleUrl)}?budget=${budgetId}&developer=${developerId}`,
          },
        },
      );
    }
    case 'tool_not_allowed':
      return new ApiError('tool_not_allowed', 'The budget of this key does not allow the tool.', {
        param: 'tool',
        facts: { budgetId },
      });
    case 'developer_not_allowed':
      return new ApiError(
        'developer_not_allowed',
        'The budget of this key does not allow charges by this developer.',
        { facts: { budgetId } },
      );
    case 'lease_not_allowed':
      return new ApiError('lease_not_allowed', 'The budget of this key does not allow leases.', {
        facts: { budgetId },
      });
  }
}
