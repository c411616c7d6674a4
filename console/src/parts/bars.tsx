/** A card that shows amounts as a chart or as a table. The chart is loaded on demand. */
import { Group, SegmentedControl, Skeleton, Table, Text } from '@mantine/core';
import { lazy, Suspense, useState, type ReactNode } from 'react';
import { decimalsOfAll } from '../format.ts';
import type { Bar } from './chart.tsx';
import { ScrollTable } from './lists.tsx';
import { Card } from './page.tsx';
import { Money } from './values.tsx';

// If the chart cannot be loaded, the rest of the page still works: the table has the same numbers.
const Chart = lazy(() => import('./chart.tsx').catch(() => ({ default: NoChart })));

function NoChart() {
  return <Text c="dimmed">The chart could not be loaded. Choose Table, or reload the page.</Text>;
}

interface BarsProps {
  readonly title: string;
  readonly aside?: ReactNode;
  readonly bars: readonly Bar[];
  /** Shown in place of an empty chart when every amount is zero. */
  readonly empty: string;
  /** The headings of the two columns: `what` of the labels, `of` of the amounts. */
  readonly what: string;
  readonly of: string;
  readonly horizontal?: boolean;
}

export function BarsCard(props: BarsProps) {
  const { title, aside, bars, empty, what, of, horizontal = false } = props;
  const [view, setView] = useState('chart');
  const decimals = decimalsOfAll(bars.map(({ amount }) => amount));
  const height = horizontal ? Math.max(120, bars.length * 36 + 40) : 240;
  const isEmpty = bars.every(({ amount }) => amount === 0);
  return (
    <Card
      title={title}
      // At the same place, empty or not: a list in it stays open when the first amount comes in.
      aside={
        <Group gap="xs">
          {aside}
          {!isEmpty && (
            <SegmentedControl
              size="xs"
              value={view}
              onChange={setView}
              aria-label={`Show ${of.toLowerCase()} as`}
              data={[
                { value: 'chart', label: 'Chart' },
                { value: 'table', label: 'Table' },
              ]}
            />
          )}
        </Group>
      }
    >
      {isEmpty ? (
        <Text c="dimmed">{empty}</Text>
      ) : view === 'chart' ? (
        <Suspense fallback={<Skeleton height={height} aria-label="Loading" />}>
          <Chart bars={bars} of={of} horizontal={horizontal} height={height} />
        </Suspense>
      ) : (
        <ScrollTable
          label={`${of} by ${what.toLowerCase()}`}
          minWidth={260}
          maxHeight={320}
          head={
            <>
              <Table.Th>{what}</Table.Th>
              <Table.Th className="money">{of}</Table.Th>
            </>
          }
        >
          {bars.map(({ label, amount }) => (
            <Table.Tr key={label}>
              <Table.Td>
                <bdi className="breaks">{label}</bdi>
              </Table.Td>
              <Table.Td className="money">
                <Money dollars={amount} decimals={decimals} />
              </Table.Td>
            </Table.Tr>
          ))}
        </ScrollTable>
      )}
    </Card>
  );
}
