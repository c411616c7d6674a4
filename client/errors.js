/**
 * What the client raises (specification section 7). One class with the facts of the answer, a subclass
 * for each code that a tool server treats in its own way. No error ever carries a key.
 */

// A registered symbol, so that an error is known across two installed copies of this package.
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
    this.chargeId = facts.chargeId;
    this.balance = facts.balance;
    this.required = facts.required;
    this.shortfall = facts.shortfall;
    this.topUpUrl = facts.topUpUrl;
    this.refundable = facts.refundable;
    this.remaining = facts.remaining;
    this.budgetId = facts.budgetId;
    this.limit = facts.limit;
    this.scope = facts.scope;
    this.resetsAt = facts.resetsAt ?? undefined;
    this.holdStatus = facts.holdStatus;
    this.toolId = facts.toolId;
  }

  /** For structured logs and for answers of your own: an error's message and cause are not enumerable. */
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

/** The error for a code, of the subclass for that code when there is one. */
export function createError(code, message, facts, cause) {
  const ErrorClass = CLASS_OF_CODE.get(code) ?? FareboxError;
  return new ErrorClass(code, message, facts, cause);
}

/** A failure of transport.js: Farebox's refusal in its own words, else `service_unavailable` or `aborted` and why. */
export function errorOf(
  { status, error, refused, isAborted, reason, cause },
  unavailable,
  facts = {},
) {
  // `hold_closed` has a status of its own, of the hold.
  const all = { ...error, holdStatus: error?.status, status, ...facts };
  if (refused) return createError(error.code, error.message ?? error.code, all, cause);
  const code = isAborted ? 'aborted' : 'service_unavailable';
  return createError(code, `${unavailable} (${reason}).`, all, cause);
}
