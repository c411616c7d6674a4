/**
 * Errors in Stripe's shape. What is thrown did nothing: the transaction around it is rolled back.
 * A declined card is not thrown, because the declined attempt is kept; see payment-intents.ts.
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
  /** The request never began: no idempotency key remembers it, so a corrected one may use the key. */
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

/** A parameter is missing, unknown or malformed: refused before anything is looked at. */
export function invalidParam(param: string, message: string, code?: string): ApiError {
  return new ApiError(400, { type: 'invalid_request_error', message, param, code }, true);
}

/** The request is well formed, but the state of things forbids it. */
export function refused(message: string, code?: string, param?: string): ApiError {
  return new ApiError(400, { type: 'invalid_request_error', message, code, param });
}

/** `where` is the parameter that named it; in the path that gives 404, elsewhere 400. */
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

/** The body that Stripe would send with a status that has nothing to do with the request. */
export function outage(status: number): Reply {
  const error: ErrorBody['error'] =
    status === 429
      ? { type: 'invalid_request_error', code: 'rate_limit', message: 'Too many requests.' }
      : { type: 'api_error', message: 'An unknown error occurred.' };
  return { status, body: { error } };
}
