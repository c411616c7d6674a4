/** Every charge to the consumer's balance, filtered by the address of the page. */
import { Anchor, Button, Group, Text } from '@mantine/core';
import { IconReceipt } from '@tabler/icons-react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { Usage } from '../answers.ts';
import { read } from '../api.ts';
import { ChargeFilters, ChargeSheet, ChargeTable, queryOf } from '../parts/charges.tsx';
import { Card, Page } from '../parts/page.tsx';
import { Empty, Failed } from '../parts/states.tsx';
import { Money } from '../parts/values.tsx';

export function UsagePage() {
  const { charge, ...filter } = useSearch({ from: '/shell/usage' });
  const navigate = useNavigate({ from: '/usage' });
  const query = queryOf(filter);
  const list = useInfiniteQuery({
    queryKey: ['usage', query.toString()],
    queryFn: ({ pageParam }) => read<Usage>(`/v1/usage?limit=50&${query}${pageParam}`),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) =>
      nextCursor === null ? undefined : `&cursor=${nextCursor}`,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 1) > 1 ? false : 5_000),
  });
  const charges = list.data?.pages.flatMap((page) => page.charges) ?? [];
  const open = (id: string | undefined) =>
    void navigate({ search: { ...filter, ...(id === undefined ? {} : { charge: id }) } });
  return (
    <Page
      title="Usage"
      intro="Every charge to your balance, newest first."
      aside={
        <Button variant="default" component="a" href={`/v1/usage.csv?${query}`} download>
          Export CSV
        </Button>
      }
    >
      <ChargeFilters value={filter} onChange={(search) => void navigate({ search })} />
      <Card
        title="Charges"
        flush
        aside={
          list.data && (
            <Text size="sm" aria-live="polite">
              Total, net of refunds: <Money dollars={list.data.pages[0]?.total ?? 0} />
            </Text>
          )
        }
      >
        {list.error && <Failed error={list.error} onRetry={() => void list.refetch()} />}
        {list.data && charges.length === 0 && (
          <Empty icon={<IconReceipt size={22} />} title="No charges">
            {query.size > 0 ? (
              'No charge matches these filters.'
            ) : (
              <>
                Tools charge your balance with your{' '}
                <Anchor href="/console/keys">consumer key</Anchor>.
              </>
            )}
          </Empty>
        )}
        {charges.length > 0 && <ChargeTable charges={charges} onOpen={open} />}
        {list.hasNextPage && (
          <Group justify="center" p="md">
            <Button
              variant="default"
              loading={list.isFetchingNextPage}
              onClick={() => void list.fetchNextPage()}
            >
              Load more
            </Button>
          </Group>
        )}
      </Card>
      <ChargeSheet
        charge={charges.find(({ id }) => id === charge)}
        onClose={() => open(undefined)}
        as="consumer"
      />
    </Page>
  );
}
