/** Pages of lists, by default newest first. */
import { sql, type Fragment } from './database.ts';

export interface Page {
  readonly limit: number;
  /** Rows strictly older than this id. */
  readonly beforeId?: string | undefined;
}

/** Whether a row comes after the page before. `id` is the column that orders the list. */
export function isBefore({ beforeId }: Page, id = sql.fragment`id`): Fragment {
  return beforeId === undefined ? sql.fragment`true` : sql.fragment`${id} < ${beforeId}::uuid`;
}
