/**
 * Errors in Stripe's shape. A thrown error changes nothing: its transaction is rolled back. A declined card is not
 * thrown, because the declined attempt is stored; see payment-intents.ts.
 */
import type { Reply } from './answers.ts';

export interface ErrorBody {
  readonly error: {
    readonly type: 'api_error' | 'card_error' | 'idempotency_error' | 'invalid_request_error';
    readonly message: string;
    readonly code?: string | undefined;
    readonly param?: string | undefined;
    readonly doc_url?: string | undefined;
    readonly [fact: string]: unknown;
  };
}

export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly body: ErrorBody;
  /** The request never began. Its idempotency key does not store the error, so a corrected request may use the key. */
  readonly beforeStart: boolean;

  constructor(status: number, error: ErrorBody['error'], beforeStart = false) {
    super(error.message);
    this.status = status;
    const code = error.code;
    const docUrl = code && `https://stripe.com/docs/error-codes/${code.replaceAll('_', '-')}`;
    this.body = { error: docUrl ? { ...error, doc_url: docUrl } : error };
    this.beforeStart = beforeStart;
  }
}

/** A parameter is missing, unknown or malformed: refused before any look-up. */
export function invalidParam(param: string, message: string, code?: string): ApiError {
  return new ApiError(400, { type: 'invalid_request_error', message, param, code }, true);
}

/** The request is well formed, but the object's state forbids it. */
export function refused(message: string, code?: string, param?: string): ApiError {
  return new ApiError(400, { type: 'invalid_request_error', message, code, param });
}

/** `where` is the parameter with the id. An id in the path gives 404, elsewhere 400. */
export function noSuch(noun: string, id: string, where = 'id'): ApiError {
  return new ApiError(where === 'id' ? 404 : 400, {
    type: 'invalid_request_error',
    code: 'resource_missing',
    message: `No such ${noun}: '${id}'`,
    param: where,
  });
}

export function unauthorized(authorization: string | undefined): ApiError {
  const key = authorization?.replace(/^Bearer\s+/i, '');
  const message = key
    ? `Invalid API Key provided: ${key.slice(0, 8)}${'*'.repeat(Math.max(0, key.length - 12))}${key.slice(12).slice(-4)}`
    : 'You did not provide an API key. You need to provide your API key in the Authorization ' +
      "header, using Bearer auth (e.g. 'Authorization: Bearer YOUR_SECRET_KEY').";
  return new ApiError(401, { type: 'invalid_request_error', message }, true);
}

export function unknownRoute(method: string, path: string): ApiError {
  const message = `Unrecognized request URL (${method}: ${path}): the simulator does not have it.`;
  return new ApiError(404, { type: 'invalid_request_error', message }, true);
}

const TOO_MANY = 'Too many requests, or another request changes the object. Try again later.';

/** Stripe's body for a status that does not depend on the request. */
export function outage(status: number, code?: string): Reply {
  const error: ErrorBody['error'] =
    status === 429
      ? { type: 'invalid_request_error', code: code ?? 'rate_limit', message: TOO_MANY }
      : { type: 'api_error', code, message: 'An unknown error occurred.' };
  return { status, body: { error } };
}
