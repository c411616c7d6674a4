/**
 * Gives charges and holds their ids when they are sent, by Postgres' clock: so the order of ids is the order
 * of positions, to within what a statement may wait (src/store/balance/spent.ts).
 */
import { randomUUID } from 'node:crypto';
import { idsAt } from '../domain/ids.ts';

/** The id of a charge or hold that has not been sent yet. */
export const NOT_SENT = '';

export type Sent =
  | { id: string; readonly consumerId: string }
  /** A capture: the id of its charge. */
  | { id: string; readonly holdId: string }
  /** A release or an extension needs no id. */
  | { readonly holdId: string };

/** `nowMs` is the current time by Postgres' clock. An entry that is sent again gets a new id. */
export function giveIds(entries: readonly Sent[], nowMs: number): void {
  const idOf = idsAt(nowMs);
  let index = 0;
  for (const entry of entries) {
    // The id of a hold ends like its consumer's.
    if ('consumerId' in entry) entry.id = idOf(index, entry.consumerId, randomUUID());
    else if ('id' in entry) entry.id = idOf(index, entry.holdId, randomUUID());
    index += 1;
  }
}
