/** The life of a top-up: its states and which may follow which. */
export const TOP_UP_STATUSES = [
  'pending',
  'completed',
  'expired',
  'failed',
  'partially_refunded',
  'refunded',
  'disputed',
  'charged_back',
] as const;

export type TopUpStatus = (typeof TOP_UP_STATUSES)[number];

/** How the money came: hosted checkout, the saved card, or by hand (`account create --balance`). */
export const TOP_UP_METHODS = ['checkout', 'direct', 'manual'] as const;
export type TopUpMethod = (typeof TOP_UP_METHODS)[number];

/** Why a top-up failed: the code is one of the error codes, the message is for the consumer. */
export interface TopUpFailure {
  readonly code: string;
  readonly message: string;
}

/** How long a hosted checkout can be paid, as Stripe has it. */
export const SESSION_MINUTES_MIN = 30;
export const SESSION_MINUTES_MAX = 24 * 60;

/**
 * Automatic top-ups of a consumer. `waiting`: one was asked for and is put off; `off` with a reason: they
 * turned themselves off, after so many declines in a row.
 */
export const AUTO_TOP_UP_STATUSES = ['on', 'waiting', 'off'] as const;

export interface AutoTopUpState {
  readonly status: (typeof AUTO_TOP_UP_STATUSES)[number];
  /** Why it waits or turned itself off: the code of a decline or of the ceiling that was reached. */
  readonly reason: string | null;
}
export const AUTO_TOP_UP_DECLINES_MAX = 3;
