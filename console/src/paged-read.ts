/** A list of the API, read page by page. */
import { infiniteQueryOptions } from '@tanstack/react-query';
import { read } from './api.ts';

export interface PageOfList {
  readonly nextCursor: string | null;
}

/** `path` has a query string, to which the cursor is added. The data are the pages read so far. */
export function pagedRead<Reply extends PageOfList>(queryKey: readonly string[], path: string) {
  return infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam }) => read<Reply>(`${path}${pageParam}`),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) =>
      nextCursor === null ? undefined : `&cursor=${nextCursor}`,
  });
}
