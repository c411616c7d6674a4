/** Schemas of approvals: what a refused call asks the owner, and the owner's answer. */
import { Type, type Static } from 'typebox';
import {
  ANSWERS,
  APPROVAL_SCOPES,
  APPROVAL_STATUSES,
  ASK_SECONDS_DEFAULT,
  ASK_SECONDS_MAX,
  ASK_SECONDS_MIN,
  ASKABLE_CODES,
  ASKERS,
  DECISIONS,
  REASON_MAX,
  WAIT_SECONDS_MAX,
} from '../domain/approval.ts';
import {
  Closed,
  Dollars,
  DollarsAsked,
  Id,
  KeyAsked,
  OrNull,
  pageMarks,
  pageParameters,
  PrintableText,
  Text,
  TimeOf,
  Timestamp,
  ToolName,
  Word,
} from './shapes.ts';

export const ApprovalBody = Closed({
  apiKey: Type.Optional(
    KeyAsked("With a secret key only: the consumer's key that was refused, as in the charge."),
  ),
  developerId: Type.Optional(
    Id('developer', 'With a consumer key or spend key only: the developer that was called.'),
  ),
  tool: ToolName,
  amount: Type.Optional(
    DollarsAsked("Dollars of the call that was refused. Default: the tool's price."),
  ),
  reason: Type.Optional(
    PrintableText(REASON_MAX, 'The report needs one more search. The owner sees this.'),
  ),
  expiresIn: Type.Optional(
    Type.Integer({
      minimum: ASK_SECONDS_MIN,
      maximum: ASK_SECONDS_MAX,
      default: ASK_SECONDS_DEFAULT,
      description: `Seconds until the request expires, from ${ASK_SECONDS_MIN} to ${ASK_SECONDS_MAX} (seven days).`,
      examples: [3_600],
    }),
  ),
});
export type ApprovalBody = Static<typeof ApprovalBody>;

export const ApprovalReply = Closed({
  id: Id('approval', 'The id of the approval.'),
  status: Word(
    APPROVAL_STATUSES,
    'Whether the owner has decided. Charge again once `approved`. `expired`: nobody decided in time, or before the spend ' +
      'key or its budget ended.',
  ),
  code: Word(ASKABLE_CODES, 'The error code of the refusal.'),
  budgetId: OrNull(
    Id('budget', 'A budget.'),
    'The budget that refused. Null: the balance did.',
    null,
  ),
  budgetName: OrNull(
    Type.String(),
    'The name of the budget. Null to developers, and to spend keys of budgets below it.',
    'Research agent',
  ),
  scope: OrNull(
    Word(APPROVAL_SCOPES, 'Which limit.'),
    'The limit that refused: the total, that of the current window, or that of one call. Null with other codes.',
    'total',
  ),
  limit: OrNull(Dollars('Dollars.'), 'The limit as it was then, in dollars, or null.', 5),
  keyId: OrNull(
    Id('key', 'A spend key.'),
    'The spend key that was to pay. Null: a consumer key. Null to developers.',
  ),
  keyName: OrNull(Type.String(), 'The name of that key, or null.', 'Session 17'),
  developerId: Id('developer', 'The developer that was called.'),
  tool: ToolName,
  amount: Dollars('Dollars of the call.', 0.5),
  reason: OrNull(
    Type.String(),
    'Text by the sender of the request, or null. Escape it before you show it. Null to developers if the holder of the key wrote it.',
    'One more search is needed.',
  ),
  askedBy: Word(ASKERS, 'The holder of the key that was to pay, or the developer that was called.'),
  decision: OrNull(
    Word(DECISIONS, 'The decision.'),
    'The decision; null while pending and when expired. `once`: one such call may pass what refused it, within 24 hours. ' +
      '`resolved`: nothing refuses the call any more, because a new window began or the budget was changed.',
    null,
  ),
  raisedTo: OrNull(Dollars('Dollars.'), 'The limit that the decision set, or null.', null),
  used: Type.Boolean({
    description: 'Whether a call has used a decision of `once`.',
    examples: [false],
  }),
  approvalUrl: Text(
    'The page of the console where the owner decides.',
    'https://billing.example.com/console/approvals',
  ),
  createdAt: Timestamp,
  expiresAt: TimeOf('When it can no longer be decided, in UTC.'),
  decidedAt: OrNull(TimeOf('When it was decided or expired.'), 'When it ended, in UTC, or null.'),
});
export type ApprovalReply = Static<typeof ApprovalReply>;

/** The reply to a decision. */
export const DecisionReply = Closed({
  ...ApprovalReply.properties,
  sessionUrl: Type.Optional(
    Text(
      'With `top_up`: send the cardholder here, because the bank wants the payment confirmed. Present only while the payment waits for that.',
      'https://farebox.example/top-up/confirm?id=tu_1',
    ),
  ),
});
export type DecisionReply = Static<typeof DecisionReply>;

export const WaitQuery = Closed({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: WAIT_SECONDS_MAX,
      default: 0,
      description: `Seconds to wait for the decision, up to ${WAIT_SECONDS_MAX}. The response comes as soon as the owner has decided.`,
      examples: [30],
    }),
  ),
});
export type WaitQuery = Static<typeof WaitQuery>;

export const ApprovalsQuery = Closed({
  ...pageParameters,
  status: Type.Optional(Word(APPROVAL_STATUSES, 'Only approvals in this state.')),
  budgetId: Type.Optional(Id('budget', 'Only approvals for this budget.')),
});
export type ApprovalsQuery = Static<typeof ApprovalsQuery>;

export const ApprovalsReply = Closed({ approvals: Type.Array(ApprovalReply), ...pageMarks });
export type ApprovalsReply = Static<typeof ApprovalsReply>;

export const DecisionBody = Closed({
  decision: Word(
    ANSWERS,
    '`once`: this call, one time. `always`: approve the developer, or raise the limit just enough for the call. ' +
      '`raise`: set the limit to `limit`. `top_up`: pay `amount` from the saved card. `deny`: refuse it.',
  ),
  limit: Type.Optional(DollarsAsked('With `raise`: the new limit in dollars.', 20)),
  amount: Type.Optional(
    DollarsAsked('With `top_up`: dollars, in whole cents. Default: what is missing.', 10),
  ),
});
export type DecisionBody = Static<typeof DecisionBody>;
