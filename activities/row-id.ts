/** Workflows use the ids of the API (`tu_…`, `inv_…`); rows have UUIDs. */
import { ApplicationFailure } from '@temporalio/activity';
import { uuidOf, type IdKind } from '../src/domain/ids.ts';

export function rowIdOf(kind: IdKind, id: string): string {
  const rowId = uuidOf(kind, id);
  if (rowId !== undefined) return rowId;
  throw ApplicationFailure.nonRetryable(`"${id}" is not a ${kind} id`, 'not_found');
}
