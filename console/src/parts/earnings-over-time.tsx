/** What all tools or one earned on each day, as a chart or a table. */
import { SegmentedControl } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { utcDay } from '../format.ts';
import { DAYS, earningsByDayRead } from '../page-reads.ts';
import { BarsCard } from './bars.tsx';
import { Loaded } from './states.tsx';

const POLL_MS = 15_000;

const RANGES = [
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
];

interface OverTimeProps {
  /** As in the URL: any other number than those offered is the usual one. */
  readonly days: string | undefined;
  readonly onDays: (days: string) => void;
  readonly tool: string | undefined;
  /** The page reads it again when something has changed. */
  readonly isLive?: boolean;
  readonly aside?: ReactNode;
}

export function EarningsOverTime({
  days: asked,
  onDays,
  tool,
  isLive = false,
  aside,
}: OverTimeProps) {
  const days = RANGES.some(({ value }) => value === asked) ? String(asked) : String(DAYS);
  const series = useQuery({
    ...earningsByDayRead(Number(days), tool),
    placeholderData: keepPreviousData,
    refetchInterval: isLive ? false : POLL_MS,
  });
  return (
    <Loaded query={series}>
      {({ series: points = [] }) => (
        <BarsCard
          title="Earnings over time"
          aside={
            <>
              {aside}
              <SegmentedControl
                size="xs"
                data={RANGES}
                value={days}
                onChange={onDays}
                aria-label="Period"
              />
            </>
          }
          what="Day (UTC)"
          of="Earned"
          empty={
            tool === undefined
              ? 'No earnings in this period.'
              : 'This tool earned nothing in this period.'
          }
          bars={points.map(({ from, earnings }) => ({ label: utcDay(from), amount: earnings }))}
        />
      )}
    </Loaded>
  );
}
