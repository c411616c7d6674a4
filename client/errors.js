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
    // Also facts that this version does not know. None may replace a member that every error has.
    for (const [name, fact] of Object.entries(facts)) {
      if (!(name in this) && name !== 'cause') this[name] = fact ?? undefined;
    }
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
export function errorOf(answer, unavailable, facts = {}) {
  const { refused, isAborted, reason, cause, status, retryAfterMs } = answer;
  // The `status` in the error is that of the hold, lease, approval or grant.
  const { status: objectStatus, retryAfter: _, ...told } = answer.error ?? {};
  const all = { ...told, objectStatus, status, retryAfterMs, ...facts };
  if (refused) return createError(told.code, told.message ?? told.code, all, cause);
  const code = isAborted ? 'aborted' : 'service_unavailable';
  const message = isAborted ? `${unavailable}.` : `${unavailable} (${reason}).`;
  return createError(code, message, all, cause);
}
