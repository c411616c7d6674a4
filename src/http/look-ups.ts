/** Looks up what a path or a body names. An id of another kind gets the same answer as one that does not exist. */
import { ApiError } from '../domain/errors.ts';
import { uuidOf, type IdKind } from '../domain/ids.ts';

/** The UUID of the `:id` in a path; undefined when it cannot be one of this kind. */
export function idIn(kind: IdKind, params: Readonly<Record<string, string>>): string | undefined {
  return uuidOf(kind, params['id'] ?? '');
}

/** `param` is the field of the body that names it, if one does. */
export function noSuch(what: string, param?: string): ApiError {
  const message = `There is no such ${what}.`;
  return new ApiError('not_found', message, param === undefined ? {} : { param });
}
