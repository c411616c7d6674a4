/** The usual refusal of a request: one of its fields is not acceptable. */
import { ApiError } from '../domain/errors.ts';

/** `param` is the path of the field. */
export function invalidField(param: string, message: string): ApiError {
  return new ApiError('invalid_request', message, { param });
}
