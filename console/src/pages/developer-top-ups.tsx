/** The top-ups that paid for charges of the developer's tools. */
import { Anchor, Button, Group, Table } from '@mantine/core';
import { IconBuildingStore } from '@tabler/icons-react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { DeveloperTopUps } from '../answers.ts';
import { read } from '../api.ts';
import { decimalsOfAll } from '../format.ts';
import { Card, Page } from '../parts/page.tsx';
import { Empty, Failed } from '../parts/states.tsx';
import { Money, Status, Time } from '../parts/values.tsx';

export function DeveloperTopUpsPage() {
  const list = useInfiniteQuery({
    queryKey: ['developer-top-ups'],
    queryFn: ({ pageParam }) => read<DeveloperTopUps>(`/v1/top-ups?limit=50${pageParam}`),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) =>
      nextCursor === null ? undefined : `&cursor=${nextCursor}`,
  });
  const topUps = list.data?.pages.flatMap((page) => page.topUps) ?? [];
  const amounts = decimalsOfAll(topUps.map(({ amount }) => amount));
  const charged = decimalsOfAll(topUps.map((topUp) => topUp.charged));
  return (
    <Page
      title="Top-ups"
      intro="Payments of consumers that were spent on your tools, first in, first out."
    >
      <Card title="Top-ups" flush>
        {list.error && <Failed error={list.error} onRetry={() => void list.refetch()} />}
        {list.data && topUps.length === 0 && (
          <Empty icon={<IconBuildingStore size={22} />} title="No top-ups yet">
            When somebody pays for your tools, the payment that covered it shows up here.
          </Empty>
        )}
        {topUps.length > 0 && (
          <Table.ScrollContainer
            minWidth={620}
            type="native"
            tabIndex={0}
            role="region"
            aria-label="Top-ups"
          >
            <Table>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Time</Table.Th>
                  <Table.Th>State</Table.Th>
                  <Table.Th className="money">Amount</Table.Th>
                  <Table.Th className="money">Spent on your tools</Table.Th>
                  <Table.Th className="money">Charges</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {topUps.map((topUp) => (
                  <Table.Tr key={topUp.id}>
                    <Table.Td>
                      <Time iso={topUp.createdAt} />
                    </Table.Td>
                    <Table.Td>
                      <Status status={topUp.status} />
                    </Table.Td>
                    <Table.Td className="money">
                      <Money dollars={topUp.amount} decimals={amounts} />
                    </Table.Td>
                    <Table.Td className="money">
                      <Money dollars={topUp.charged} decimals={charged} />
                    </Table.Td>
                    <Table.Td className="money">
                      <Anchor
                        inherit
                        renderRoot={(props) => (
                          <Link
                            to="/developer/charges"
                            search={{ consumerId: topUp.consumerId }}
                            {...props}
                          />
                        )}
                      >
                        {topUp.charges.toLocaleString('en-US')}
                      </Anchor>
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
        )}
        {list.hasNextPage && (
          <Group justify="center" p="md">
            <Button variant="default" onClick={() => void list.fetchNextPage()}>
              Load more
            </Button>
          </Group>
        )}
      </Card>
    </Page>
  );
}
