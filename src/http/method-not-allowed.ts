/** 405, with Allow. */
import { ApiError } from '../domain/errors.ts';

export function methodNotAllowed(accepted: Iterable<string>): ApiError {
  const allow = [...accepted].join(', ');
  return new ApiError('method_not_allowed', `This path accepts ${allow}.`, { allow });
}
