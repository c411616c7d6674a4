/** The top-ups that paid for charges by the developer. */
import { Anchor, Table, Text } from '@mantine/core';
import { IconBuildingStore } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import type { DeveloperTopUps } from '../answers.ts';
import { decimalsOfAll, statusText } from '../format.ts';
import { PagedList, ScrollTable, usePages } from '../parts/lists.tsx';
import { Card, Page } from '../parts/page.tsx';
import { Empty } from '../parts/states.tsx';
import { Money, Status, Time } from '../parts/values.tsx';

export function DeveloperTopUpsPage() {
  const list = usePages<DeveloperTopUps>({
    queryKey: ['developer-top-ups'],
    path: '/v1/top-ups?limit=50',
  });
  const topUps = list.data?.pages.flatMap((page) => page.topUps) ?? [];
  const amounts = decimalsOfAll(topUps.map(({ amount }) => amount));
  const charged = decimalsOfAll(topUps.map((topUp) => topUp.charged));
  return (
    <Page
      title="Top-ups"
      intro="Consumer top-ups that were spent on your tools. The oldest money is spent first."
    >
      <Card title="Top-ups" flush>
        <PagedList
          list={list}
          isEmpty={topUps.length === 0}
          empty={
            <Empty icon={<IconBuildingStore size={22} />} title="No top-ups yet">
              When a consumer pays for one of your tools, the top-up that paid for it appears here.
            </Empty>
          }
        >
          <ScrollTable
            label="Top-ups"
            stacks
            minWidth={300}
            head={
              <>
                <Table.Th>Time</Table.Th>
                <Table.Th visibleFrom="sm">Status</Table.Th>
                <Table.Th className="money" visibleFrom="sm">
                  Amount
                </Table.Th>
                <Table.Th className="money">Spent on your tools</Table.Th>
                <Table.Th className="money">Charges</Table.Th>
              </>
            }
          >
            {topUps.map((topUp) => (
              <Table.Tr key={topUp.id}>
                <Table.Td>
                  <Time iso={topUp.createdAt} />
                  <Text size="xs" c="dimmed" hiddenFrom="sm">
                    {statusText[topUp.status]}, <Money dollars={topUp.amount} />
                  </Text>
                </Table.Td>
                <Table.Td data-label="Status" visibleFrom="sm">
                  <Status status={topUp.status} />
                </Table.Td>
                <Table.Td data-label="Amount" className="money" visibleFrom="sm">
                  <Money dollars={topUp.amount} decimals={amounts} />
                </Table.Td>
                <Table.Td data-label="Spent on your tools" className="money">
                  <Money dollars={topUp.charged} decimals={charged} />
                </Table.Td>
                <Table.Td data-label="Charges" className="money">
                  {topUp.charges.toLocaleString('en-US')}
                  {/* The list also has those that other top-ups of the consumer paid for. */}
                  <Anchor
                    size="xs"
                    display="block"
                    renderRoot={(props) => (
                      <Link
                        to="/developer/charges"
                        search={{ consumerId: topUp.consumerId }}
                        {...props}
                      />
                    )}
                  >
                    Charges of this consumer
                  </Anchor>
                </Table.Td>
              </Table.Tr>
            ))}
          </ScrollTable>
        </PagedList>
      </Card>
    </Page>
  );
}
