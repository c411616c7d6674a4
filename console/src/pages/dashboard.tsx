/** The Developer Dashboard: earnings, revenue by tool, and recent charges as they come in. */
import { Anchor, Button, Select, SimpleGrid } from '@mantine/core';
import { useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import type { Charges, Earnings, LiveEarnings } from '../answers.ts';
import { daysAgo } from '../format.ts';
import { useLive } from '../live.ts';
import {
  EARNINGS_BY_DAY,
  earningsRead,
  keysRead,
  recentChargesRead,
  toolsRead,
} from '../page-reads.ts';
import { BarsCard } from '../parts/bars.tsx';
import { ChargeSnippet } from '../parts/charge-snippet.tsx';
import { EarningsFigures } from '../parts/earnings-figures.tsx';
import { EarningsOverTime } from '../parts/earnings-over-time.tsx';
import { Page } from '../parts/page.tsx';
import { RecentCharges } from '../parts/recent-charges.tsx';
import { Loaded, Loading } from '../parts/states.tsx';
import { Steps } from '../parts/steps.tsx';

/** While the events do not arrive. */
const POLL_MS = 3_000;
const TOOLS_SHOWN = 10;
/** In the file of earnings: a year, today included. */
const EXPORTED_DAYS = 366;

export function DashboardPage() {
  const [isLoaded, setIsLoaded] = useState(false);
  const queries = useQueryClient();
  const isLive = useLive<LiveEarnings>({
    path: '/v1/earnings/live',
    event: 'earnings',
    isWanted: isLoaded,
    onEvent: ({ totalEarnings, todayEarnings }) =>
      queries.setQueryData(
        earningsRead.queryKey,
        (read) => read && { ...read, totalEarnings, todayEarnings },
      ),
    refresh: () =>
      Promise.all(
        [earningsRead.queryKey, recentChargesRead.queryKey, [EARNINGS_BY_DAY]].map((queryKey) =>
          queries.invalidateQueries({ queryKey }),
        ),
      ),
  });
  const refetchInterval = isLive ? false : POLL_MS;
  const earnings = useQuery({ ...earningsRead, refetchInterval });
  const recent = useQuery({ ...recentChargesRead, refetchInterval });
  const hasBoth = earnings.data !== undefined && recent.data !== undefined;
  // The first figures come first.
  useEffect(() => setIsLoaded((before) => before || hasBoth), [hasBoth]);
  return (
    <Page
      title="Developer Dashboard"
      intro="Amounts are net of refunds. Days are UTC days."
      aside={
        <Button
          variant="default"
          component="a"
          href={`/v1/earnings.csv?from=${daysAgo(EXPORTED_DAYS - 1)}`}
          download
        >
          Export CSV
        </Button>
      }
    >
      <FirstSteps recent={recent} />
      <Loaded query={earnings}>
        {(all) => (
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="lg">
            <EarningsFigures {...all} />
          </SimpleGrid>
        )}
      </Loaded>
      <OverTime tools={Object.keys(earnings.data?.byTool ?? {}).toSorted()} isLive={isLive} />
      {earnings.data && <ByTool byTool={earnings.data.byTool} />}
      <RecentCharges query={recent}>
        Run the code below with your secret key and a consumer key. The charge appears here
        automatically.
      </RecentCharges>
      <ChargeSnippet />
    </Page>
  );
}

/** In a list to choose from; typing finds the others. */
const OPTIONS_SHOWN = 50;

interface OverTimeProps {
  readonly tools: readonly string[];
  readonly isLive: boolean;
}

function OverTime({ tools, isLive }: OverTimeProps) {
  const { days, tool } = useSearch({ from: '/shell/developer' });
  const navigate = useNavigate();
  const show = (changed: { days?: string; tool?: string | undefined }) =>
    void navigate({ to: '/developer', search: { days, tool, ...changed }, resetScroll: false });
  return (
    <EarningsOverTime
      days={days}
      onDays={(chosen) => show({ days: chosen })}
      tool={tool}
      isLive={isLive}
      aside={
        (tools.length > 1 || tool !== undefined) && (
          <Select
            size="xs"
            aria-label="Earnings of"
            searchable
            limit={OPTIONS_SHOWN}
            allowDeselect={false}
            data={[
              { value: '', label: 'All tools' },
              ...new Set([...tools, ...(tool === undefined ? [] : [tool])]),
            ]}
            value={tool ?? ''}
            onChange={(value) => show({ tool: value || undefined })}
          />
        )
      }
    />
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

function FirstSteps({ recent }: { readonly recent: UseQueryResult<Charges> }) {
  const keys = useQuery(keysRead);
  const tools = useQuery(toolsRead);
  if ([keys, tools, recent].some(({ isPending }) => isPending)) return <Loading />;
  if (!keys.data || !tools.data || !recent.data) return null;
  return (
    <Steps
      title="Charge for your first tool"
      steps={[
        {
          title: 'Create a secret key',
          text: 'Your tool server charges consumers with it.',
          to: '/developer/settings',
          isDone: keys.data.keys.some(
            ({ kind, mode, revokedAt }) =>
              kind === 'developer' && mode === 'live' && revokedAt === null,
          ),
        },
        {
          title: 'Price a tool',
          text: 'Register it with its price per call.',
          to: '/developer/tools',
          isDone: tools.data.tools.length > 0,
        },
        {
          title: 'Make a charge',
          text: 'Run the code below. This page updates automatically.',
          isDone: recent.data.charges.length > 0,
        },
      ]}
    />
  );
}
