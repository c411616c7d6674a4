/** The one shape of errors (specification section 7), for whatever went wrong on the way. */
import type { Context, Middleware } from 'koa';
import type { Logger } from 'pino';
import { failureOf } from '../charging/flush-failure.ts';
import { ApiError, errorTypeOf } from '../domain/errors.ts';
import type { ErrorReply } from '../schemas/errors.ts';
import { requestIdOf, respondJson } from './respond.ts';

export function answerErrors(log: Logger, docsUrl: string): Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      const known = apiErrorOf(error);
      const requestId = requestIdOf(ctx);
      if (known.status === 500) log.error({ err: error, requestId }, `answered ${known.code}`);
      if (known.status === 503) log.warn({ requestId }, known.message);
      sendError(ctx, known, docsUrl);
    }
  };
}

/** A failure of the database on a read means that nothing happened; what is not known is ours. */
export function apiErrorOf(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (isDatabaseAway(error)) {
    return new ApiError(
      'service_unavailable',
      'The ledger cannot be reached; try again shortly.',
      { retryAfterSeconds: 1 },
      error,
    );
  }
  return new ApiError('internal_error', 'Something went wrong on our side.', {}, error);
}

/** The error of a write: a line that was lost may have been lost after its commit. */
export function writeErrorOf(error: unknown): unknown {
  if (!isLineLost(error)) return error;
  return new ApiError(
    'outcome_unknown',
    'The line to the ledger was lost; whether it happened is not known. ' +
      'Send it again with the same Idempotency-Key to find out.',
    {},
    error,
  );
}

function isDatabaseAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (
    error.constructor.name === 'ConnectionError' ||
    isLineLost(error) ||
    failureOf(error, true) === 'not_executed'
  );
}

function isLineLost(error: unknown): boolean {
  return (
    error instanceof Error &&
    ['BackendTerminatedError', 'BackendTerminatedUnexpectedlyError'].includes(
      error.constructor.name,
    )
  );
}

function sendError(ctx: Context, error: ApiError, docsUrl: string): void {
  const { retryAfterSeconds } = error.details;
  const headers: Record<string, string> = {};
  if (error.details.allow !== undefined) headers['Allow'] = error.details.allow;
  if (retryAfterSeconds !== undefined) headers['Retry-After'] = String(retryAfterSeconds);
  if (error.status === 401) headers['WWW-Authenticate'] = 'Bearer';
  // What was not read of a body too large would be taken for the next request.
  if (error.code === 'payload_too_large') headers['Connection'] = 'close';
  const body = errorBody(error, docsUrl, requestIdOf(ctx));
  respondJson(ctx, { status: error.status, body, headers });
}

export function errorBody(error: ApiError, docsUrl: string, requestId: string): ErrorReply {
  const { param, facts } = error.details;
  return {
    error: {
      type: errorTypeOf(error.code),
      code: error.code,
      message: error.message,
      ...(param === undefined ? {} : { param }),
      docUrl: `${docsUrl}#${error.code}`,
      requestId,
      ...facts,
    },
  };
}
