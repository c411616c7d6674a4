/** Checks bodies against their schemas. Unknown members are ignored, wrong types are never coerced. */
import { Ajv, type ErrorObject } from 'ajv';
import type { Static, TSchema } from 'typebox';
import { ApiError } from '../domain/errors.ts';

const ajv = new Ajv({ strictTypes: false, formats: { 'date-time': true } });

/** Members whose every fault is one of the amount, whatever its kind. */
const MONEY = new Set(['/amount', '/price']);

/** Compiles a schema to a function that gives a body its type or throws the 400 that says what is wrong. */
export function bodyValidator<T extends TSchema>(schema: T): (body: unknown) => Static<T> {
  const check = ajv.compile(schema);
  return (body) => {
    if (check(body)) return body as Static<T>;
    throw invalid(check.errors?.[0]);
  };
}

function invalid(error: ErrorObject | undefined): ApiError {
  const path = error?.instancePath ?? '';
  if (MONEY.has(path)) {
    return new ApiError('invalid_amount', `${path.slice(1)} must be a number of dollars.`, {
      param: path.slice(1),
    });
  }
  if (path === '/apiKey') {
    return new ApiError('invalid_api_key', 'apiKey must be a consumer key that is in force.', {
      param: 'apiKey',
    });
  }
  if (path === '' && error?.keyword === 'type') {
    return new ApiError('invalid_request', 'The body must be a JSON object.');
  }
  const missing: unknown = error?.params['missingProperty'];
  const param =
    typeof missing === 'string' ? missing : path.slice(1).replaceAll('/', '.') || undefined;
  const problem =
    typeof missing === 'string'
      ? 'is missing'
      : error?.keyword === 'pattern'
        ? 'has the wrong form'
        : (error?.message ?? 'is not valid');
  return new ApiError(
    missing === 'amount' ? 'invalid_amount' : 'invalid_request',
    `${param ?? 'The body'} ${problem}.`,
    param === undefined ? {} : { param },
  );
}
