/** Refusals of budgets: which node, which limit, what is left of it and when it comes back. */
import type { Call } from '../../../charging/budget-rules.ts';
import type { RefusedByBudget } from '../../../charging/draft-charge.ts';
import { ApiError, type ErrorFacts } from '../../../domain/errors.ts';
import type { LimitScope } from '../../../domain/budget.ts';
import { wireId } from '../../../domain/ids.ts';
import { dollarsOf, formatDollars } from '../../../domain/money.ts';

/** Nothing is used up of a limit for each call or lease, so nothing is left of it either. */
const SAYS: Readonly<Record<LimitScope, (limit: string, left: string) => string>> = {
  total: (limit, left) => `The budget allows ${limit} in total; ${left} is left.`,
  window: (limit, left) => `The budget allows ${limit} in its current window; ${left} is left.`,
  per_call: (limit) => `The budget allows at most ${limit} for one call.`,
  per_lease: (limit) => `The budget allows at most ${limit} for one lease.`,
};

/**
 * In the console, where the owner signs in. Refusals go to tool servers and agents, so their links must not be able to
 * change anything by themselves.
 */
export function approvalsPage(consoleUrl: string): string {
  return `${consoleUrl}/console/approvals`;
}

export function budgetError(
  refusal: Exclude<RefusedByBudget, { kind: 'invalid_api_key' }>,
  consoleUrl: string,
): ApiError {
  const budgetId = wireId('budget', refusal.budgetId);
  switch (refusal.kind) {
    case 'limit_reached': {
      const { scope, resetsAt } = refusal;
      const [limit, remaining] = [refusal.limitMicros, refusal.remainingMicros].map(dollarsOf);
      return new ApiError(
        'spend_limit_reached',
        SAYS[scope](formatDollars(refusal.limitMicros), formatDollars(refusal.remainingMicros)),
        {
          facts: {
            budgetId,
            scope,
            limit: limit ?? 0,
            remaining: remaining ?? 0,
            resetsAt,
            raiseUrl: `${approvalsPage(consoleUrl)}?budget=${budgetId}&scope=${scope}`,
            ...factsOf(refusal.call),
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
            ...factsOf(refusal.call),
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

/** What the holder of a spend key needs in order to ask for an approval. */
function factsOf(call: Call | undefined): ErrorFacts {
  if (!call) return {};
  const { developerId, tool, amountMicros } = call;
  return { developerId: wireId('developer', developerId), tool, required: dollarsOf(amountMicros) };
}
