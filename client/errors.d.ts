/** What the client raises. */
import type { Hold } from './index.js';

/**
 * Why charge() or refund() did nothing, or verifyReceipt() could not tell. No field ever holds a key but
 * `idempotencyKey`, which is no secret.
 */
export declare class FareboxError extends Error {
  /** Like `instanceof`, also across two installed copies of this package. */
  static isInstance(value: unknown): value is FareboxError;

  readonly code: string;
  /**
   * `not_charged`: this call took no money (`not_refunded`: gave none back; `not_held`: set none aside;
   * `not_done`: changed nothing). `unknown`: it may have, because an answer was lost; call again with this `idempotencyKey` to find out, without a second one.
   */
  readonly outcome: 'not_charged' | 'not_refunded' | 'not_held' | 'not_done' | 'unknown';
  /** The key of this charge, refund or other write; absent when no request was sent. */
  readonly idempotencyKey: string | undefined;
  /** HTTP status of the last answer; absent when there was none. */
  readonly status: number | undefined;
  /** A coarse class, such as `payment_error`. */
  readonly type: string | undefined;
  /** The field at fault. */
  readonly param: string | undefined;
  readonly docUrl: string | undefined;
  readonly requestId: string | undefined;
  /** A charge that the answer refers to. */
  readonly chargeId: string | undefined;
  /** With `insufficient_balance`: dollars that the consumer has. */
  readonly balance: number | undefined;
  /** With `insufficient_balance`: dollars that the charge asked for. */
  readonly required: number | undefined;
  /** With `insufficient_balance`: dollars that are missing. */
  readonly shortfall: number | undefined;
  /** With `insufficient_balance`: where the consumer tops up. */
  readonly topUpUrl: string | undefined;
  /** With `refund_exceeds_charge`: dollars of the charge that are left to refund. */
  readonly refundable: number | undefined;
  /** With `exceeds_hold`: dollars that are still held. With `spend_limit_reached`: dollars that the limit has left. */
  readonly remaining: number | undefined;
  /** With `spend_limit_reached`, `tool_not_allowed` and `developer_not_allowed`: the budget that refused. */
  readonly budgetId: string | undefined;
  /** With `spend_limit_reached`: dollars of the limit. */
  readonly limit: number | undefined;
  /** With `spend_limit_reached`: whether the limit is in all, of the current window, or of one call. */
  readonly scope: 'total' | 'window' | 'per_call' | undefined;
  /** With `spend_limit_reached` of a window: when the next one begins. */
  readonly resetsAt: string | undefined;
  /** With `hold_closed`: what became of the hold. */
  readonly holdStatus: Hold['status'] | undefined;
  /** With `tool_exists`: the tool that has the name. */
  readonly toolId: string | undefined;
  /** All of it, with the message: for structured logs and answers of your own. */
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
