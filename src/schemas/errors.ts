/** The one schema of every error (specification section 7). */
import { Type, type Static } from 'typebox';
import { ERROR_TYPES, ERRORS, type ErrorCode } from '../domain/errors.ts';
import { APPROVAL_STATUSES } from '../domain/approval.ts';
import { LIMIT_SCOPES } from '../domain/budget.ts';
import { GRANT_STATUSES } from '../domain/grant.ts';
import { HOLD_STATUSES } from '../domain/hold.ts';
import { LEASE_STATUSES } from '../domain/lease.ts';
import { Closed, Count, Dollars, Id, Text, TimeOf, Word } from './shapes.ts';

const CODES = Object.keys(ERRORS) as ErrorCode[];

/** Members that only some errors have. */
const facts = {
  balance: Type.Optional(Dollars("With `insufficient_balance`: the consumer's balance.")),
  required: Type.Optional(
    Dollars(
      'With `insufficient_balance`: the dollars needed. With `spend_limit_reached` and `approval_required`: the amount of ' +
        'the refused charge or hold.',
    ),
  ),
  developerId: Type.Optional(
    Id(
      'developer',
      'With `insufficient_balance`, `spend_limit_reached` and `approval_required`: the developer of the refused charge or ' +
        'hold.',
    ),
  ),
  tool: Type.Optional(
    Text(
      'With `insufficient_balance`, `spend_limit_reached` and `approval_required`: the tool of the refused charge or hold.',
      'search',
    ),
  ),
  shortfall: Type.Optional(
    Dollars('With `insufficient_balance`: the dollars missing, not counting a debt.'),
  ),
  topUpUrl: Type.Optional(
    Text('A page where the consumer can top up.', 'https://billing.example.com/top-up'),
  ),
  raiseUrl: Type.Optional(
    Text(
      'With `spend_limit_reached`: the page of the console where the owner can raise the limit.',
      'https://billing.example.com/console/approvals',
    ),
  ),
  approvalUrl: Type.Optional(
    Text(
      'With `approval_required`: the page of the console where the owner can approve the developer.',
      'https://billing.example.com/console/approvals',
    ),
  ),
  keysUrl: Type.Optional(
    Text(
      'With `invalid_api_key` and `invalid_secret_key`: the page of the console where the owner creates such a key. For the key of a caller, it is the page of budgets and spend keys.',
      'https://billing.example.com/console/budgets',
    ),
  ),
  topUpId: Type.Optional(Id('topUp', 'The top-up that failed.')),
  left: Type.Optional(
    Dollars('With `consent_ceiling_reached`: the dollars left of the monthly limit.'),
  ),
  refundable: Type.Optional(
    Dollars('With `refund_exceeds_charge`: the dollars of the charge that can still be refunded.'),
  ),
  remaining: Type.Optional(
    Dollars(
      'With `exceeds_hold` and `exceeds_lease`: the dollars left in it. With `spend_limit_reached`: the dollars left ' +
        'of the limit.',
    ),
  ),
  budgetId: Type.Optional(
    Id(
      'budget',
      'With `spend_limit_reached`, `approval_required` and `..._not_allowed`: the budget that refused.',
    ),
  ),
  limit: Type.Optional(Dollars('With `spend_limit_reached`: the limit.', 5)),
  scope: Type.Optional(
    Word(
      LIMIT_SCOPES,
      'With `spend_limit_reached`: whether the limit is the total, or that of the current window, of one call, or of one lease.',
    ),
  ),
  resetsAt: Type.Optional(
    Type.Union([TimeOf('When the window ends.'), Type.Null()], {
      description:
        'With `spend_limit_reached`: when the window ends; null when the limit is not of a window.',
      examples: ['2026-11-22T00:00:00.000Z'],
    }),
  ),
  status: Type.Optional(
    Word(
      [...new Set([...GRANT_STATUSES, ...HOLD_STATUSES, ...LEASE_STATUSES, ...APPROVAL_STATUSES])],
      'With `grant_not_active` and `..._closed`: the state of the grant, hold, lease or approval.',
    ),
  ),
  fence: Type.Optional(Count('With `lease_fenced`: the fence of the lease.', 2)),
  toolId: Type.Optional(Id('tool', 'With `tool_exists`: the tool that has the name.')),
};

export const ErrorDetail = Closed({
  type: Word(ERROR_TYPES, 'The class of the error.'),
  code: Word(CODES, 'What went wrong. Branch on this.'),
  message: Text('What went wrong, as a sentence for people.', 'There is no such charge.'),
  param: Type.Optional(Text('The field that caused the error, such as `amount`.', 'amount')),
  docUrl: Text(
    'The page that explains the code.',
    'https://billing.example.com/docs/errors#not_found',
  ),
  requestId: Text(
    'Quote it when you ask for help. The same as `X-Request-Id`.',
    'req_01a1fd6455e57aa3b31e95f51a48130e',
  ),
  retryAfter: Type.Optional(
    Count(
      'How many seconds to wait before you try again. The same as the header `Retry-After`, which the results of a batch do not have.',
      1,
    ),
  ),
  ...facts,
});

export const ErrorReply = Closed({ error: ErrorDetail });
export type ErrorReply = Static<typeof ErrorReply>;
