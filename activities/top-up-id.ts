/** Workflows name a top-up as the API does (`tu_…`), its row has a UUID. */
import { ApplicationFailure } from '@temporalio/activity';
import { uuidOf } from '../src/domain/ids.ts';

export function rowIdOf(topUpId: string): string {
  const id = uuidOf('topUp', topUpId);
  if (id !== undefined) return id;
  throw ApplicationFailure.nonRetryable(`"${topUpId}" is no top-up's id`, 'not_found');
}
