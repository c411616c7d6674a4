/** Workflows name things as the API does (`tu_…`, `inv_…`), their rows have UUIDs. */
import { ApplicationFailure } from '@temporalio/activity';
import { uuidOf, type IdKind } from '../src/domain/ids.ts';

export function rowIdOf(kind: IdKind, id: string): string {
  const rowId = uuidOf(kind, id);
  if (rowId !== undefined) return rowId;
  throw ApplicationFailure.nonRetryable(`"${id}" is no id of this kind: ${kind}`, 'not_found');
}
