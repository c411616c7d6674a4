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

/** About what the rows of a page may take: each read holds up the event loop while it is made into text. */
const PAGE_BYTES_MAX = 128 * 1024;

/** A row of a page that ends early. */
export interface OfLightPage {
  /** Whether another row follows that was left out. */
  readonly hasNext: boolean;
}

/** The first of `rows`, with `has_next`: as many as fit into a page, and at least one. `bytes` is about what a row takes. */
export function lightPage(rows: Fragment, order: Fragment, bytes: Fragment): Fragment {
  return sql.fragment`
    select * from (
      select r.*, lead(true, 1, false) over in_order as has_next,
        sum(${bytes}) over (in_order rows between unbounded preceding and 1 preceding) as bytes_before
      from (${rows}) r window in_order as (order by ${order})
    ) r where coalesce(bytes_before, 0) < ${PAGE_BYTES_MAX}
  `;
}
