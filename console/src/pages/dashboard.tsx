/** The Developer Dashboard: earnings, revenue by tool, and recent charges as they come in. */
import { Anchor, SegmentedControl, Select, SimpleGrid, Text, Title } from '@mantine/core';
import { IconReceipt } from '@tabler/icons-react';
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import type { Earnings } from '../answers.ts';
import { utcDay } from '../format.ts';
import { useLive } from '../live.ts';
import {
  DAYS,
  earningsByDayRead,
  earningsRead,
  keysRead,
  recentChargesRead,
  toolsRead,
} from '../page-reads.ts';
import { BarsCard } from '../parts/bars.tsx';
import { ChargeTable } from '../parts/charges.tsx';
import { Card, Page } from '../parts/page.tsx';
import { developerSnippets, Snippets } from '../parts/snippets.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { Steps } from '../parts/steps.tsx';
import { TryCharge } from '../parts/try-charge.tsx';
import { Money } from '../parts/values.tsx';

/** While the events do not arrive. */
const POLL_MS = 3_000;
const TOOLS_SHOWN = 10;

export function DashboardPage() {
  const [isLoaded, setIsLoaded] = useState(false);
  const queries = useQueryClient();
  const isLive = useLive('/v1/earnings/live', 'earnings', isLoaded, () =>
    Promise.all(
      [earningsRead, recentChargesRead].map(({ queryKey }) =>
        queries.invalidateQueries({ queryKey }),
      ),
    ),
  );
  const refetchInterval = isLive ? false : POLL_MS;
  const earnings = useQuery({ ...earningsRead, refetchInterval });
  const recent = useQuery({ ...recentChargesRead, refetchInterval });
  const hasBoth = earnings.data !== undefined && recent.data !== undefined;
  // The first figures come first.
  useEffect(() => setIsLoaded((before) => before || hasBoth), [hasBoth]);
  const navigate = useNavigate();
  return (
    <Page title="Developer Dashboard" intro="Amounts are net of refunds. Days are UTC days.">
      <FirstSteps hasCharges={(recent.data?.charges.length ?? 1) > 0} />
      <Loaded query={earnings}>
        {({ totalEarnings, todayEarnings }) => (
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="lg">
            <Figure label="Total earnings" dollars={totalEarnings} />
            <Figure label="Today’s revenue" dollars={todayEarnings} />
          </SimpleGrid>
        )}
      </Loaded>
      <OverTime />
      {earnings.data && <ByTool byTool={earnings.data.byTool} />}
      <Card
        title="Recent charges"
        flush
        aside={
          <Anchor component={Link} to="/developer/charges" size="sm">
            All charges
          </Anchor>
        }
      >
        <Loaded query={recent}>
          {({ charges }) =>
            charges.length === 0 ? (
              <Empty icon={<IconReceipt size={22} />} title="No charges yet">
                Run the code below with your secret key and a consumer key. The charge appears here
                automatically.
              </Empty>
            ) : (
              <ChargeTable
                charges={charges}
                onOpen={(charge) => void navigate({ to: '/developer/charges', search: { charge } })}
              />
            )
          }
        </Loaded>
      </Card>
      <Snippet />
    </Page>
  );
}

function Figure({ label, dollars }: { readonly label: string; readonly dollars: number }) {
  return (
    <Card>
      <Text c="dimmed">{label}</Text>
      <Text fz={{ base: 28, sm: 32 }} fw={650} lh={1.25} className="breaks" aria-live="polite">
        <Money dollars={dollars} />
      </Text>
    </Card>
  );
}

const RANGES = [
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
];

function OverTime() {
  const [days, setDays] = useState(String(DAYS));
  const series = useQuery({
    ...earningsByDayRead(Number(days)),
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  });
  return (
    <Loaded query={series}>
      {({ series: points = [] }) => (
        <BarsCard
          title="Earnings over time"
          aside={
            <SegmentedControl
              size="xs"
              data={RANGES}
              value={days}
              onChange={setDays}
              aria-label="Period"
            />
          }
          what="Day (UTC)"
          of="Earned"
          empty="No earnings in this period."
          bars={points.map(({ from, earnings }) => ({ label: utcDay(from), amount: earnings }))}
        />
      )}
    </Loaded>
  );
}

function ByTool({ byTool }: { readonly byTool: Earnings['byTool'] }) {
  const sorted = Object.entries(byTool).toSorted(([, a], [, b]) => b - a);
  if (sorted.length === 0) return null;
  return (
    <BarsCard
      title="Revenue by tool"
      aside={
        sorted.length > TOOLS_SHOWN && (
          <Anchor component={Link} to="/developer/tools" size="sm">
            All {sorted.length} tools
          </Anchor>
        )
      }
      what="Tool"
      of="Revenue"
      horizontal
      empty="No earnings yet."
      bars={sorted.slice(0, TOOLS_SHOWN).map(([label, amount]) => ({ label, amount }))}
    />
  );
}

function FirstSteps({ hasCharges }: { readonly hasCharges: boolean }) {
  const keys = useQuery(keysRead);
  const tools = useQuery(toolsRead);
  if (!keys.data || !tools.data) return null;
  return (
    <Steps
      title="Charge for your first tool"
      steps={[
        {
          title: 'Create a secret key',
          text: 'Your tool server charges consumers with it.',
          to: '/developer/settings',
          isDone: keys.data.keys.some(({ kind, mode }) => kind === 'developer' && mode === 'live'),
        },
        {
          title: 'Price a tool',
          text: 'Register it with its price per call.',
          to: '/developer/tools',
          isDone: tools.data.tools.length > 0,
        },
        {
          title: 'Make a charge',
          text: 'Run the code below. This page updates by itself.',
          isDone: hasCharges,
        },
      ]}
    />
  );
}

function Snippet() {
  const priced = useQuery(toolsRead).data?.tools.filter(({ price }) => price !== null) ?? [];
  const [chosen, setChosen] = useState<string | null>(null);
  const tool = priced.find(({ name }) => name === chosen) ?? priced[0];
  const name = tool?.name ?? 'search';
  const price = tool?.price ?? 0.02;
  return (
    <Card
      title="Charge from your code"
      aside={
        priced.length > 1 && (
          <Select
            size="xs"
            aria-label="Tool"
            allowDeselect={false}
            data={[...new Set(priced.map((each) => each.name))]}
            value={name}
            onChange={setChosen}
          />
        )
      }
    >
      <Text c="dimmed" size="sm" mb="xs">
        Replace SECRET_KEY with a secret key from{' '}
        <Anchor component={Link} to="/developer/settings" inherit underline="always">
          Developer Settings
        </Anchor>
        : a test key while you build, a live key when users pay.
      </Text>
      <Snippets snippets={developerSnippets('SECRET_KEY', name, price)} />
      <Title order={3} fz="md" mt="lg" mb="xs">
        Try it here
      </Title>
      <TryCharge tool={name} price={price} />
    </Card>
  );
}
