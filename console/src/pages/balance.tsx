/** The consumer's first page: the balance, topping it up, spending by day, and past top-ups. */
import { Alert, Anchor, SimpleGrid, Table, Text } from '@mantine/core';
import { IconWallet } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import type { Balance, TopUp, Usage } from '../answers.ts';
import { ApiFailure, read } from '../api.ts';
import { decimalsOfAll, lasts, paymentText, usd, utcDay } from '../format.ts';
import { anyBudgetRead, balanceRead, DAYS, topUpsRead, usageByDayRead } from '../page-reads.ts';
import { BarsCard } from '../parts/bars.tsx';
import { Elsewhere } from '../parts/budget-limits.tsx';
import { PagedList, ScrollTable } from '../parts/lists.tsx';
import { Card, Page } from '../parts/page.tsx';
import { Empty, Loaded, Loading } from '../parts/states.tsx';
import { SavedCardCards } from '../parts/saved-card.tsx';
import { Steps } from '../parts/steps.tsx';
import { TopUpForm, topUpText } from '../parts/top-up-form.tsx';
import { Money, Status, Time } from '../parts/values.tsx';

const POLL_MS = 4_000;

export function BalancePage() {
  const balance = useQuery({ ...balanceRead, refetchInterval: POLL_MS });
  const queries = useQueryClient();
  // A top-up that repays a debt may change only the debt; a dispute or a new card, only the automatic top-ups.
  const state = balance.data && JSON.stringify(balance.data);
  const shown = useRef(state);
  useEffect(() => {
    // The first balance comes with everything else.
    const hasChanged = shown.current !== undefined && shown.current !== state;
    shown.current = state;
    if (!hasChanged) return;
    for (const name of ['top-ups', 'usage-by-day', 'consent']) {
      void queries.invalidateQueries({ queryKey: [name] });
    }
  }, [state, queries]);
  return (
    <Page title="Balance">
      <ReturnedTopUp />
      <FirstSteps />
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
        <Card title="Available">
          <Loaded query={balance}>
            {({ balance: dollars, debt, held }) => (
              <>
                <Text fz="clamp(1.5rem, 7vw, 2.5rem)" fw={650} lh={1.15} aria-live="polite">
                  <Money dollars={dollars} />
                </Text>
                {debt > 0 && (
                  <Text size="sm" c="dimmed" mt="xs">
                    You owe <Money dollars={debt} /> for refunded or disputed payments. Your next
                    top-up pays this first.
                  </Text>
                )}
                {held > 0 && (
                  <Text size="sm" c="dimmed" mt="xs">
                    Another <Money dollars={held} /> is on hold for running calls or disputed
                    payments.
                  </Text>
                )}
                <RunsOut dollars={dollars} />
              </>
            )}
          </Loaded>
        </Card>
        <TopUpForm />
      </SimpleGrid>
      <SavedCardCards />
      <Spending />
      <TopUpHistory />
    </Page>
  );
}

function useSpending() {
  return useQuery({ ...usageByDayRead, refetchInterval: 30_000 });
}

/** How long the balance lasts at the rate of the last 7 days. */
function RunsOut({ dollars }: { readonly dollars: number }) {
  const { data } = useSpending();
  const week = data?.days.slice(-7).reduce((sum, { spent }) => sum + spent, 0) ?? 0;
  if (week <= 0 || dollars <= 0) return null;
  return (
    <Text size="sm" c="dimmed" mt="xs">
      Lasts {lasts(dollars, week)} at the rate of the last 7 days.
    </Text>
  );
}

function FirstSteps() {
  const reads = [
    useQuery(balanceRead),
    useQuery(anyBudgetRead),
    useInfiniteQuery(topUpsRead),
    useSpending(),
  ] as const;
  const [{ data: balance }, { data: budgets }, { data: topUps }, { data: spending }] = reads;
  const hasSpent = spending?.days.some(({ spent }) => spent > 0);
  // Asked only of accounts that have spent nothing lately.
  const usage = useQuery({
    queryKey: ['usage-any'],
    queryFn: () => read<Usage>('/v1/usage?limit=1'),
    enabled: hasSpent === false,
    refetchInterval: ({ state }) => (state.data?.charges.length === 0 ? POLL_MS : false),
  });
  const hasPaid = hasSpent === true || (usage.data && usage.data.charges.length > 0);
  const asked = [...reads, ...(hasSpent === false ? [usage] : [])];
  if (asked.some(({ isPending }) => isPending)) return <Loading />;
  if (!balance || !topUps || !budgets || hasPaid === undefined) return null;
  // Only the newest top-ups are loaded, and a refunded one no longer counts as completed.
  const hasAdded =
    balance.balance > 0 ||
    hasPaid ||
    topUps.pages.some((page) => page.topUps.some(({ status }) => status === 'completed'));
  return (
    <Steps
      title="Get started"
      steps={[
        {
          title: 'Add money',
          text: 'Top up with a card. $5.00 is enough to try it.',
          isDone: hasAdded,
        },
        {
          title: 'Create a spend key',
          text: 'Set a limit, and copy the key into your MCP client. It can spend no more than that.',
          to: '/budgets',
          // The account's consumer key counts only when it pays: an operator may have made it.
          isDone: hasPaid || budgets.budgets.length > 0,
        },
        {
          title: 'Use a paid tool',
          text: 'Your first charge appears here automatically.',
          isDone: hasPaid,
        },
      ]}
    />
  );
}

const LOOK_MS = 1_000;
const LOOK_FACTOR = 1.2;
const LOOK_MS_MAX = 60_000;

/** The state of a top-up after the payment page has led back here, until it is credited. */
function ReturnedTopUp() {
  const { topUp: id, result } = useSearch({ from: '/shell/balance' });
  const queries = useQueryClient();
  const topUp = useQuery({
    queryKey: ['top-up', id],
    queryFn: async () => {
      const found = await read<TopUp>(`/v1/top-up/${encodeURIComponent(id ?? '')}`);
      // Read after it, so that the money is in it.
      return { found, balance: await read<Balance>('/v1/balance') };
    },
    enabled: id !== undefined,
    // Less and less often: a bank debit takes days.
    refetchInterval: ({ state }) =>
      state.data?.found.status === 'pending' &&
      Math.min(LOOK_MS * LOOK_FACTOR ** state.dataUpdateCount, LOOK_MS_MAX),
  });
  const status = topUp.data?.found.status;
  useEffect(() => {
    if (status === 'completed') void queries.invalidateQueries();
  }, [status, queries]);
  if (id === undefined) return null;
  if (topUp.error instanceof ApiFailure && topUp.error.status === 404) return <Elsewhere />;
  return <Loaded query={topUp}>{(data) => <Returned {...data} result={result} />}</Loaded>;
}

function Returned({
  found: topUp,
  balance,
  result,
}: {
  readonly found: TopUp;
  readonly balance: Balance;
  readonly result: string | undefined;
}) {
  const { status } = topUp;
  const isUnpaid = status === 'failed' || status === 'expired';
  // A payment page that was left may have been paid: in another tab, or before somebody went back to it.
  if (result !== 'paid' && (status === 'pending' || isUnpaid)) {
    return isUnpaid ? (
      <Alert color="gray" title="No payment was made" role="status">
        You left the payment page. Your balance has not changed.
      </Alert>
    ) : (
      <Alert color="gray" title="You left the payment page" role="status">
        No payment has arrived. If you paid in another tab, we will add the money to your balance
        when the payment arrives.
      </Alert>
    );
  }
  const amount = usd(topUp.amount);
  if (status === 'pending') {
    return (
      <Alert color="blue" title="Payment processing" role="status">
        We will add {amount} to your balance when the payment completes. A card payment takes a
        moment; a bank debit takes several days.
      </Alert>
    );
  }
  if (isUnpaid) {
    return (
      <Alert color="red" title="Payment failed" role="status">
        {topUp.failure?.message ?? 'Nothing was added to your balance.'}
      </Alert>
    );
  }
  return status === 'completed' ? (
    <Alert color="green" title="Top-up completed" role="status">
      {topUpText(topUp, balance)}
    </Alert>
  ) : (
    <Alert color="gray" title="Top-up" role="status">
      {topUpText(topUp, balance)}
    </Alert>
  );
}

function Spending() {
  const spending = useSpending();
  return (
    <Loaded query={spending}>
      {({ days }) => (
        <BarsCard
          title={`Spending, last ${DAYS} days (UTC)`}
          what="Day (UTC)"
          of="Spent"
          empty="No spending in this period."
          bars={days.map(({ from, spent }) => ({ label: utcDay(from), amount: spent }))}
        />
      )}
    </Loaded>
  );
}

function TopUpHistory() {
  const list = useInfiniteQuery({
    ...topUpsRead,
    refetchInterval: ({ state }) =>
      state.data?.pages[0]?.topUps.some(({ status }) => status === 'pending') ? POLL_MS : false,
  });
  const topUps = list.data?.pages.flatMap((page) => page.topUps) ?? [];
  const decimals = decimalsOfAll(topUps.map(({ amount }) => amount));
  return (
    <Card title="Top-ups" flush>
      <PagedList
        list={list}
        isEmpty={topUps.length === 0}
        empty={
          <Empty icon={<IconWallet size={22} />} title="No top-ups yet">
            Your payments appear here with their status.
          </Empty>
        }
      >
        <ScrollTable
          label="Top-ups"
          minWidth={300}
          head={
            <>
              <Table.Th>Time</Table.Th>
              <Table.Th>Status</Table.Th>
              <Table.Th className="money">Amount</Table.Th>
            </>
          }
        >
          {topUps.map((topUp) => (
            <Table.Tr key={topUp.id}>
              <Table.Td>
                <Time iso={topUp.createdAt} />
                <Text size="xs" c="dimmed">
                  {paymentText(topUp)}
                </Text>
              </Table.Td>
              <Table.Td>
                <Status status={topUp.status} />
                {topUp.sessionUrl !== undefined && (
                  <Anchor href={topUp.sessionUrl} size="sm" ml="xs">
                    {topUp.method === 'direct' ? 'Confirm at your bank' : 'Pay now'}
                  </Anchor>
                )}
                {topUp.refunded > 0 && (
                  <Text size="xs" c="dimmed">
                    {usd(topUp.refunded)} refunded
                  </Text>
                )}
                {topUp.status === 'disputed' && (
                  <Text size="xs" c="dimmed">
                    The payment is disputed, or the bank suspects fraud. The amount in question
                    cannot be spent until this is settled.
                  </Text>
                )}
                {topUp.failure && (
                  <Text size="xs" c="dimmed">
                    {topUp.failure.message}
                  </Text>
                )}
              </Table.Td>
              <Table.Td className="money">
                <Money dollars={topUp.amount} decimals={decimals} />
                {!!topUp.tax && (
                  <Text size="xs" c="dimmed">
                    and {usd(topUp.tax)} tax
                  </Text>
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </ScrollTable>
      </PagedList>
    </Card>
  );
}
