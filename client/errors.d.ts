/** The errors that the client throws. */
import type { ErrorDetail } from './api.js';

/** Why a call failed. No field contains a key, except `idempotencyKey` and `idempotencyKeys`, which are not secret. */
export declare class FareboxError extends Error {
  /** Like `instanceof`, but also works across two installed copies of this package. */
  static isInstance(value: unknown): value is FareboxError;

  readonly code: string;
  /**
   * `not_charged`: this call took no money (`not_refunded`: refunded nothing; `not_held`: held nothing;
   * `not_signed`: signed nothing; `not_done`: changed nothing). `unknown`: it may have, because a response
   * was lost. Call again with this `idempotencyKey` to find out; it takes effect at most once.
   */
  readonly outcome:
    | 'not_charged'
    | 'not_refunded'
    | 'not_held'
    | 'not_signed'
    | 'not_done'
    | 'unknown';
  /** The key of this charge, refund or other write; absent when no request was sent. */
  readonly idempotencyKey: string | undefined;
  /**
   * After batch(): the keys of its members, in order, including those that it generated; undefined for a
   * release, which needs none. Send the members again with these keys to find out what an unknown outcome
   * was.
   */
  readonly idempotencyKeys: readonly (string | undefined)[] | undefined;
  /** The HTTP status of the last response; absent when there was none. */
  readonly status: number | undefined;
  /** A coarse class, such as `payment_error`. */
  readonly type: string | undefined;
  /** The field that caused the error. */
  readonly param: string | undefined;
  readonly docUrl: string | undefined;
  /** How many milliseconds to wait before the next call; absent when Farebox did not say. */
  readonly retryAfterMs: number | undefined;
  readonly requestId: string | undefined;
  /** The charge that the error refers to. */
  readonly chargeId: string | undefined;
  /** The hold of a paid call with the `outcome` `unknown`; `farebox.holds.get(holdId)` has what was captured. */
  readonly holdId: string | undefined;
  /** With `insufficient_balance`: the consumer's balance, in dollars. */
  readonly balance: number | undefined;
  /**
   * With `insufficient_balance`, `spend_limit_reached` and `approval_required`: the amount of the charge or hold, in
   * dollars. With `invalid_amount`: 0, if the units of the call cost nothing.
   */
  readonly required: number | undefined;
  /**
   * With `insufficient_balance`, `spend_limit_reached` and `approval_required`: the developer of the refused charge or
   * hold, as `approvals.ask()` takes it.
   */
  readonly developerId: string | undefined;
  /** With the same codes: the tool of the refused charge or hold. */
  readonly tool: string | undefined;
  /** With `insufficient_balance`: the missing dollars. */
  readonly shortfall: number | undefined;
  /** With `insufficient_balance`: the page where the consumer can top up. */
  readonly topUpUrl: string | undefined;
  /**
   * With `invalid_api_key` and `invalid_secret_key`: the page of the console where such a key is made: a
   * spend key for a caller.
   */
  readonly keysUrl: string | undefined;
  /** With `spend_limit_reached`: the page where the owner can raise the limit. */
  readonly raiseUrl: string | undefined;
  /** With `approval_required`: the page where the owner can approve the developer. */
  readonly approvalUrl: string | undefined;
  /** After charge() with `ask`: the approval that was asked for. */
  readonly approvalId: string | undefined;
  /** After charge() with `ask`: `denied`, `expired`, or `pending` when the wait was over. */
  readonly approvalStatus: 'pending' | 'denied' | 'expired' | undefined;
  /** After topUp(): the top-up that failed. */
  readonly topUpId: string | undefined;
  /** With `consent_ceiling_reached`: dollars left of the owner's monthly limit. */
  readonly left: number | undefined;
  /** With `refund_exceeds_charge`: dollars of the charge that can still be refunded. */
  readonly refundable: number | undefined;
  /** With `exceeds_hold`: dollars still held. With `spend_limit_reached`: dollars left of the limit. */
  readonly remaining: number | undefined;
  /** With `spend_limit_reached`, `approval_required`, `tool_not_allowed` and `developer_not_allowed`: the budget. */
  readonly budgetId: string | undefined;
  /** With `spend_limit_reached`: dollars of the limit. */
  readonly limit: number | undefined;
  /** With `spend_limit_reached`: whether the limit is in total, of the current window, of one call, or of one lease. */
  readonly scope: 'total' | 'window' | 'per_call' | 'per_lease' | undefined;
  /** With `spend_limit_reached` of a window: when the next one begins. */
  readonly resetsAt: string | undefined;
  /** With `hold_closed`, `lease_closed` and `approval_closed`: the state of the hold, lease or approval. */
  readonly objectStatus: ErrorDetail['status'] | undefined;
  /** With `lease_fenced`: the fence of the lease. */
  readonly fence: number | undefined;
  /** With `tool_exists`: the tool that has the name. */
  readonly toolId: string | undefined;
  /** All fields, including the message, for structured logs and your own responses. */
  toJSON(): Record<string, unknown>;
}

/** The consumer must top up. */
export declare class InsufficientBalanceError extends FareboxError {
  readonly code: 'insufficient_balance';
}

/** Reject the call. */
export declare class InvalidApiKeyError extends FareboxError {
  readonly code: 'invalid_api_key';
}

/** Fail, or run the tool without payment. */
export declare class ServiceUnavailableError extends FareboxError {
  readonly code: 'service_unavailable';
}
