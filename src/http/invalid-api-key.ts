/** The error of a charge, hold or lease whose `apiKey` is not the key of anybody who pays. */
import { ApiError } from '../domain/errors.ts';

export function invalidApiKey(): ApiError {
  return new ApiError('invalid_api_key', 'apiKey must be an active consumer key or spend key.', {
    param: 'apiKey',
  });
}
