/** Pages of a list, by default newest first. A cursor is the id of the last item of the previous page. */
import { ApiError } from '../domain/errors.ts';
import { uuidOf, wireId, type IdKind } from '../domain/ids.ts';
import { LIMIT_DEFAULT, type PageQuery } from '../schemas/shapes.ts';
import type { OfLightPage, Page } from '../store/page.ts';

interface ListedPage<T> {
  readonly rows: readonly T[];
  readonly hasMore: boolean;
  readonly nextCursor: string | null;
}

/** Reads one row beyond the page, to know whether there is a next page. A page of large rows may end before `limit`. */
export async function listPage<T extends { readonly id: string } & Partial<OfLightPage>>(
  { limit = LIMIT_DEFAULT, cursor }: PageQuery,
  kind: IdKind,
  read: (page: Page) => Promise<readonly T[]>,
): Promise<ListedPage<T>> {
  const found = await read({ limit: limit + 1, beforeId: beforeIdOf(kind, cursor) });
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  const hasMore = found.length > limit || last?.hasNext === true;
  return { rows, hasMore, nextCursor: hasMore && last ? wireId(kind, last.id) : null };
}

function beforeIdOf(kind: IdKind, cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined;
  const id = uuidOf(kind, cursor);
  if (id === undefined) throw invalidCursor();
  return id;
}

export function invalidCursor(): ApiError {
  return new ApiError('invalid_cursor', 'cursor must be a nextCursor of this list.', {
    param: 'cursor',
  });
}
