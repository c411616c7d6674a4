/** Every charge to the consumer's balance. The filters are in the URL. */
import { Anchor, Button, Text } from '@mantine/core';
import { IconReceipt } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { PaidCharge, Usage } from '../answers.ts';
import { read } from '../api.ts';
import { ChargeFilters, ChargeSheet, ChargeTable, FindCharge, queryOf } from '../parts/charges.tsx';
import { PagedList, usePages, whileOnePage } from '../parts/lists.tsx';
import { Card, Page } from '../parts/page.tsx';
import { PaidBy } from '../parts/paid-by.tsx';
import { Empty, Failed, Loaded } from '../parts/states.tsx';
import { Money } from '../parts/values.tsx';

export function UsagePage() {
  const { charge, ...filter } = useSearch({ from: '/shell/usage' });
  const navigate = useNavigate({ from: '/usage' });
  const query = queryOf(filter);
  const list = usePages<Usage>({
    queryKey: ['usage', query.toString()],
    path: `/v1/usage?limit=50&${query}`,
    pollMs: whileOnePage(5_000),
  });
  const charges = list.data?.pages.flatMap((page) => page.charges) ?? [];
  const open = (id: string | undefined) =>
    void navigate({
      search: { ...filter, ...(id === undefined ? {} : { charge: id }) },
      resetScroll: false,
    });
  const listed = charges.find(({ id }) => id === charge);
  // It may not be on a loaded page, when the link was shared.
  const one = useQuery({
    queryKey: ['usage', 'charge', charge],
    queryFn: () => read<PaidCharge>(`/v1/usage/${charge}`),
    enabled: charge !== undefined,
  });
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
      <ChargeFilters value={filter} onChange={(search) => void navigate({ search, replace: true })}>
        <FindCharge onFind={open} />
      </ChargeFilters>
      {one.error && !listed && <Failed error={one.error} />}
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
        <PagedList
          list={list}
          isEmpty={charges.length === 0}
          empty={
            <Empty icon={<IconReceipt size={22} />} title="No charges">
              {query.size > 0 ? (
                'No charge matches these filters.'
              ) : (
                <>
                  Tools charge your balance with a spend key. Create one under{' '}
                  <Anchor href="/console/budgets">Budgets</Anchor>.
                </>
              )}
            </Empty>
          }
        >
          <ChargeTable charges={charges} onOpen={open} />
        </PagedList>
      </Card>
      <ChargeSheet
        charge={charge === undefined ? undefined : (one.data ?? listed)}
        onClose={() => open(undefined)}
        as="consumer"
      >
        <Loaded query={one}>{({ paidBy }) => <PaidBy credits={paidBy} />}</Loaded>
      </ChargeSheet>
    </Page>
  );
}
