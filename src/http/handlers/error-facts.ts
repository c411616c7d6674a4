/** What the pages about an error code say, in any format. Texts are Markdown. */
import { ERRORS, errorTypeOf, type ErrorCode, type ErrorType } from '../../domain/errors.ts';
import type { Endpoint } from '../endpoint.ts';
import { FAILURE_CODES } from '../../stripe/verdict.ts';
import { errorCodesOf } from '../openapi/errors.ts';

export interface ErrorFacts {
  readonly status: number;
  readonly type: ErrorType;
  readonly meaning: string;
  /** What happened, and what to do. */
  readonly effect: string;
  /** Method and path. */
  readonly returnedBy: readonly string[];
}

export const EFFECTS_OF_STATUSES =
  '2xx: durable. 4xx and 503: no money moved. An error with `topUpId` keeps its `Idempotency-Key`. ' +
  '`idempotency_key_in_use` (409), 500 or a dropped connection: unknown; repeat the request with the same `Idempotency-Key` to find out.';

export function isCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code);
}

export function factsOf(code: ErrorCode, endpoints: readonly Endpoint[]): ErrorFacts {
  const [status, meaning] = ERRORS[code];
  const returnedBy = endpoints
    .filter((endpoint) => errorCodesOf(endpoint).has(code))
    .map(({ method, path }) => `${method.toUpperCase()} ${path}`);
  return { status, type: errorTypeOf(code), meaning, effect: effectOf(code), returnedBy };
}

const FAILURES_OF_TOP_UPS: ReadonlySet<string> = new Set(FAILURE_CODES);

function effectOf(code: ErrorCode): string {
  const [status] = ERRORS[code];
  if (code === 'idempotency_key_in_use' || status === 500) {
    return 'Unknown. Repeat the request with the same `Idempotency-Key` to find out.';
  }
  if ((status === 402 || status === 403) && FAILURES_OF_TOP_UPS.has(code)) {
    return 'Nothing was paid. If the error has `topUpId`, the `Idempotency-Key` stays with that top-up: to pay again, send a new one.';
  }
  if (status === 409) return 'Nothing happened. The same request would fail again.';
  if (status === 429 || status === 503) {
    return 'This attempt changed nothing. Repeat the request after `Retry-After` seconds.';
  }
  return 'No money moved. Fix the cause before you repeat the request.';
}
