/**
 * The errors that the client throws (specification section 7). One class with the fields of the answer, and a subclass
 * for each code that tool servers handle specially. No error contains a key.
 */

// A registered symbol, so that errors are recognized across two installed copies of this package.
const BRAND = Symbol.for('@farebox/client.FareboxError');

export class FareboxError extends Error {
  static isInstance(value) {
    return typeof value === 'object' && value !== null && value[BRAND] === true;
  }

  get [BRAND]() {
    return true;
  }

  constructor(code, message, facts = {}, cause) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'FareboxError';
    this.code = code;
    this.outcome = facts.outcome ?? 'not_charged';
    this.status = facts.status;
    this.type = facts.type;
    this.param = facts.param;
    this.docUrl = facts.docUrl;
    this.requestId = facts.requestId;
    this.idempotencyKey = facts.idempotencyKey;
    this.idempotencyKeys = facts.idempotencyKeys;
    this.chargeId = facts.chargeId;
    this.balance = facts.balance;
    this.required = facts.required;
    this.shortfall = facts.shortfall;
    this.topUpUrl = facts.topUpUrl;
    this.keysUrl = facts.keysUrl;
    this.raiseUrl = facts.raiseUrl;
    this.approvalUrl = facts.approvalUrl;
    this.approvalId = facts.approvalId;
    this.approvalStatus = facts.approvalStatus;
    this.refundable = facts.refundable;
    this.remaining = facts.remaining;
    this.budgetId = facts.budgetId;
    this.limit = facts.limit;
    this.scope = facts.scope;
    this.resetsAt = facts.resetsAt ?? undefined;
    this.holdStatus = facts.holdStatus;
    this.fence = facts.fence;
    this.toolId = facts.toolId;
  }

  /** For structured logs and your own responses: an error's message and cause are not enumerable. */
  toJSON() {
    return Object.assign({}, this, { message: this.message, cause: this.cause?.message });
  }
}

export class InsufficientBalanceError extends FareboxError {
  name = 'InsufficientBalanceError';
}

export class InvalidApiKeyError extends FareboxError {
  name = 'InvalidApiKeyError';
}

export class ServiceUnavailableError extends FareboxError {
  name = 'ServiceUnavailableError';
}

const CLASS_OF_CODE = new Map([
  ['insufficient_balance', InsufficientBalanceError],
  ['invalid_api_key', InvalidApiKeyError],
  ['service_unavailable', ServiceUnavailableError],
]);

/** Creates the error for a code, with the code's subclass if there is one. */
export function createError(code, message, facts, cause) {
  const ErrorClass = CLASS_OF_CODE.get(code) ?? FareboxError;
  return new ErrorClass(code, message, facts, cause);
}

/**
 * Turns a failure of transport.js into Farebox's own error, or into `service_unavailable` or `aborted` with the reason.
 */
export function errorOf(
  { status, error, refused, isAborted, reason, cause },
  unavailable,
  facts = {},
) {
  // The `status` of `hold_closed` is that of the hold.
  const all = { ...error, holdStatus: error?.status, status, ...facts };
  if (refused) return createError(error.code, error.message ?? error.code, all, cause);
  const code = isAborted ? 'aborted' : 'service_unavailable';
  return createError(
    code,
    isAborted ? `${unavailable}.` : `${unavailable} (${reason}).`,
    all,
    cause,
  );
}
