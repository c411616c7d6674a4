/** Tables that scroll sideways on a phone, and lists that load page by page. */
import { Button, Group, Table } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { pagedRead, type PageOfList } from '../paged-read.ts';
import { Failed, Loading } from './states.tsx';

interface ScrollTableProps {
  readonly label: string;
  /** In pixels: on a narrower screen the table scrolls. */
  readonly minWidth: number;
  /** The cells of the header row. */
  readonly head: ReactNode;
  readonly highlightOnHover?: boolean;
  /** On a phone each row is a block of lines instead: every cell but the first needs its heading as `data-label`. */
  readonly stacks?: boolean;
  /** In pixels: a longer table scrolls, so that what is below it can be found. */
  readonly maxHeight?: number;
  /** The rows. */
  readonly children: ReactNode;
}

export function ScrollTable(props: ScrollTableProps) {
  const {
    label,
    minWidth,
    head,
    highlightOnHover = false,
    stacks = false,
    maxHeight,
    children,
  } = props;
  return (
    <Table.ScrollContainer
      minWidth={minWidth}
      type="native"
      tabIndex={0}
      role="region"
      aria-label={label}
      {...(stacks ? { className: 'stacks' } : {})}
      {...(maxHeight === undefined ? {} : { mah: maxHeight })}
    >
      <Table highlightOnHover={highlightOnHover}>
        <Table.Thead>
          <Table.Tr>{head}</Table.Tr>
        </Table.Thead>
        <Table.Tbody>{children}</Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

interface Source<Reply extends PageOfList> {
  readonly queryKey: readonly string[];
  /** With its query string, to which the cursor is added. */
  readonly path: string;
  /** How soon to ask again, in milliseconds, given the pages loaded so far. */
  readonly pollMs?: (pages: readonly Reply[]) => number | false;
}

/**
 * The `pollMs` of a list whose new entries are on its first page. While more pages are loaded, it is not read
 * again.
 */
export function whileOnePage(ms: number) {
  return (pages: readonly PageOfList[]) => pages.length <= 1 && ms;
}

/** The `pollMs` of a list whose rows change on every page: all pages are read again, the more they are the less often. */
export function everyPage(ms: number) {
  return (pages: readonly PageOfList[]) => ms * Math.max(pages.length, 1);
}

/** A list of the API, as the pages loaded so far. */
export function usePages<Reply extends PageOfList>({ queryKey, path, pollMs }: Source<Reply>) {
  return useInfiniteQuery({
    ...pagedRead<Reply>(queryKey, path),
    refetchInterval: ({ state }) => pollMs?.(state.data?.pages ?? []) ?? false,
  });
}

interface PagedListProps {
  readonly list: ReturnType<typeof usePages>;
  readonly isEmpty: boolean;
  /** Shown in place of the list when it has loaded and is empty. */
  readonly empty: ReactNode;
  readonly children: ReactNode;
}

/**
 * A paged list with its states: loading, failed, empty, loaded, more to load. The next page fails where it
 * would be.
 */
export function PagedList({ list, isEmpty, empty, children }: PagedListProps) {
  const more = () => void list.fetchNextPage();
  const isOfNext = list.isFetchNextPageError;
  return (
    <>
      {list.isPending && <Loading />}
      {list.error && !isOfNext && <Failed error={list.error} onRetry={() => void list.refetch()} />}
      {isEmpty ? list.data && empty : children}
      {list.error && isOfNext && <Failed error={list.error} onRetry={more} />}
      {list.hasNextPage && !isOfNext && (
        <Group justify="center" p="md">
          <Button variant="default" loading={list.isFetchingNextPage} onClick={more}>
            Load more
          </Button>
        </Group>
      )}
    </>
  );
}
