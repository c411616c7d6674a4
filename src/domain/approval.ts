/** Approvals: what a refused call may ask the owner of the account, and the answers. */
import { asMicros, MICROS_PER_CENT, type Micros } from './money.ts';
import { TOP_UP_MICROS_MIN } from './top-up.ts';

/** Refusals that an owner can lift. */
export const ASKABLE_CODES = [
  'approval_required',
  'spend_limit_reached',
  'insufficient_balance',
] as const;
export type AskableCode = (typeof ASKABLE_CODES)[number];

export const APPROVAL_STATUSES = ['pending', 'approved', 'denied', 'expired'] as const;
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number];

/** The limits that an owner can let a call pass. */
export const APPROVAL_SCOPES = ['total', 'window', 'per_call'] as const;
export type ApprovalScope = (typeof APPROVAL_SCOPES)[number];

/** What the owner enters to raise the limit, in the console and on the page behind the link in the mail. */
export const RAISED_LIMIT_LABELS: Readonly<Record<ApprovalScope, string>> = {
  total: 'New total limit, in dollars',
  window: 'New limit for each window, in dollars',
  per_call: 'New limit for one call, in dollars',
};

/** What an owner can answer. `top_up` pays from the saved card. */
export const ANSWERS = ['once', 'always', 'raise', 'top_up', 'deny'] as const;
export type AnswerKind = (typeof ANSWERS)[number];

/** `resolved`: nothing refuses any more, for example because a new window began. */
export const DECISIONS = [...ANSWERS, 'resolved'] as const;
export type Decision = (typeof DECISIONS)[number];

/** Who asked: the holder of the key that was to pay, or the developer that it called. */
export const ASKERS = ['payer', 'developer'] as const;
export type Asker = (typeof ASKERS)[number];

export const ASK_SECONDS_MIN = 60;
export const ASK_SECONDS_DEFAULT = 86_400;
export const ASK_SECONDS_MAX = 7 * 86_400;
/** The longest wait of one request. Proxies commonly close a connection that is silent for a minute. */
export const WAIT_SECONDS_MAX = 55;
export const REASON_MAX = 500;

/**
 * The most requests for one key, by its holder or by one developer, pending or of the last hour. Each is a
 * mail to the owner.
 */
export const ASKS_OF_KEY_MAX = 20;
/**
 * The same for one budget and for one account, counted separately for developers and for key holders. A key that may
 * create keys can have any number of them, and requests may expire soon.
 */
export const ASKS_OF_BUDGET_MAX = 50;
export const ASKS_OF_ACCOUNT_MAX = 200;
/** How long `once` can be used after the decision, in hours. As in functions/post_entries_2.sql. */
export const ONCE_HOURS = 24;
/** How long the same question gets the same denial again, and the owner no second mail. */
export const DENIED_SECONDS = 3_600;
/** The most developers that an owner can approve for one budget. */
export const APPROVED_DEVELOPERS_MAX = 1_000;

/** Answers that do not fit are refused before anything is looked up: what the call lacks decides what helps. */
export function canAnswer(code: AskableCode, answer: AnswerKind): boolean {
  if (answer === 'deny') return true;
  if (code === 'insufficient_balance') return answer === 'top_up';
  if (answer === 'raise') return code === 'spend_limit_reached';
  return answer !== 'top_up';
}

/** The top-up that lets the balance cover the call: in whole cents, and at least the smallest amount that can be paid. */
export function shortfallOf({
  amountMicros,
  balanceMicros,
  debtMicros,
}: Readonly<Record<'amountMicros' | 'balanceMicros' | 'debtMicros', Micros>>): Micros {
  const missing = amountMicros + debtMicros - balanceMicros;
  const cents = Math.ceil(missing / MICROS_PER_CENT) * MICROS_PER_CENT;
  return asMicros(Math.max(cents, TOP_UP_MICROS_MIN));
}
