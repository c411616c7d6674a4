/**
 * Turns every failure of a request into the one shape of errors (specification section 7), or into a page for
 * people.
 */
import type { Context, Middleware } from 'koa';
import type { Logger } from 'pino';
import { ChargeFailure } from '../charging/charge-failure.ts';
import { ClockError } from '../charging/database-clock.ts';
import { ApiError, errorTypeOf, type RefusalDetails } from '../domain/errors.ts';
import type { ErrorReply } from '../schemas/errors.ts';
import { PoolBusyError } from '../store/bounded-pool.ts';
import { isConnectionLost, isDatabaseUnavailable } from '../store/failures.ts';
import { NoTurnError } from '../store/accounts/turns.ts';
import { tooMany } from './account-gate.ts';
import { failedPage } from './handlers/failed-page.ts';
import { respondPage } from './handlers/html-pages.ts';
import { requestIdOf, respondJson } from './respond.ts';
import type { ResponseRecorder } from './response-recorder.ts';

export function answerErrors(
  log: Logger,
  baseUrl: string,
  responses: ResponseRecorder,
): Middleware {
  return async (ctx, next) => {
    try {
      await next();
      responses.succeeded(ctx);
    } catch (error) {
      const known = apiErrorOf(error);
      const requestId = requestIdOf(ctx);
      ctx.state['errorCode'] = known.code;
      responses.failed(ctx, known);
      if (known.details.isOnDemand !== true) {
        if (known.status === 500) log.error({ err: error, requestId }, `answered ${known.code}`);
        if (known.status === 503) log.warn({ err: known.cause, requestId }, known.message);
      }
      sendError(ctx, known, baseUrl);
    }
  };
}

/** A database that fails during a read changed nothing; unrecognized errors are internal. */
export function apiErrorOf(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof ChargeFailure) return failureError(error);
  if (error instanceof NoTurnError) return tooMany();
  if (error instanceof ClockError) {
    return unavailable(
      "This server's clock is out of sync, so it makes no charges. Try again shortly.",
      error,
    );
  }
  if (error instanceof PoolBusyError) {
    return unavailable('Too many requests are waiting for the database; try again shortly.', error);
  }
  if (isDatabaseUnavailable(error)) {
    return unavailable('The database cannot be reached; try again shortly.', error);
  }
  return new ApiError('internal_error', 'Something went wrong on our side.', {}, error);
}

function unavailable(message: string, cause: unknown): ApiError {
  return new ApiError('service_unavailable', message, { retryAfterSeconds: 1 }, cause);
}

/** The error of a charge that could not be decided. */
function failureError(failure: ChargeFailure): ApiError {
  switch (failure.kind) {
    case 'not_made':
      return unavailable(
        `${failure.message} This request charged nothing; try again shortly.`,
        failure,
      );
    case 'key_in_flight':
      return new ApiError(
        'idempotency_key_in_use',
        'The first request with this Idempotency-Key is still running; try again for its outcome.',
        { retryAfterSeconds: 1 },
      );
    case 'outcome_unknown':
      return outcomeUnknown(failure);
    case 'lost_on_demand':
      return outcomeUnknown(failure, { isOnDemand: true });
  }
}

/** The connection was lost after a write was sent. */
export function outcomeUnknown(cause: unknown, details: RefusalDetails = {}): ApiError {
  return new ApiError(
    'outcome_unknown',
    'The connection to the database was lost, so the outcome is unknown. ' +
      'Repeat the request with the same Idempotency-Key to find out. If you sent no key, check what has changed before you repeat it.',
    details,
    cause,
  );
}

/** The error of a write: its connection may have been lost after the commit. */
export function writeErrorOf(error: unknown): unknown {
  return isConnectionLost(error) ? outcomeUnknown(error) : error;
}

/** What a request does after it has changed something: its error must not say that nothing happened. */
export async function afterCommit<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw isDatabaseUnavailable(error) ? outcomeUnknown(error) : error;
  }
}

/** Wraps the middleware of a page for people: its errors are pages too, and its forms write. */
export function asPage(middleware: Middleware): Middleware {
  return async (ctx, next) => {
    ctx.state['isPage'] = true;
    try {
      await middleware(ctx, next);
    } catch (error) {
      throw ctx.method === 'POST' ? writeErrorOf(error) : error;
    }
  };
}

function sendError(ctx: Context, error: ApiError, baseUrl: string): void {
  const { retryAfterSeconds } = error.details;
  const headers: Record<string, string> = { ...error.details.headers };
  if (error.details.allow !== undefined) headers['Allow'] = error.details.allow;
  if (retryAfterSeconds !== undefined) headers['Retry-After'] = String(retryAfterSeconds);
  if (error.status === 401) headers['WWW-Authenticate'] = 'Bearer';
  // The unread rest of a body that is too large would be parsed as the next request.
  if (error.code === 'payload_too_large') headers['Connection'] = 'close';
  if (ctx.state['isPage'] === true) {
    return respondPage(ctx, error.status, failedPage(error), headers);
  }
  const body = errorBody(error, baseUrl, requestIdOf(ctx));
  respondJson(ctx, { status: error.status, body, headers });
}

/**
 * The page of the console where an owner gets the key that an error asks for. A tool server, which sends the key of its
 * caller as `apiKey`, gets a spend key.
 */
function keyPageOf({ code, details }: ApiError): string | undefined {
  if (code === 'invalid_secret_key') return '/console/developer/settings';
  if (code !== 'invalid_api_key') return undefined;
  return details.param === 'apiKey' ? '/console/budgets' : '/console/keys';
}

export function errorBody(error: ApiError, baseUrl: string, requestId: string): ErrorReply {
  const { param, facts, retryAfterSeconds: retryAfter } = error.details;
  const keyPage = keyPageOf(error);
  return {
    error: {
      type: errorTypeOf(error.code),
      code: error.code,
      message: error.message,
      ...(param === undefined ? {} : { param }),
      docUrl: `${baseUrl}/docs/errors#${error.code}`,
      requestId,
      ...(retryAfter === undefined ? {} : { retryAfter }),
      ...(keyPage === undefined ? {} : { keysUrl: `${baseUrl}${keyPage}` }),
      ...facts,
    },
  };
}
