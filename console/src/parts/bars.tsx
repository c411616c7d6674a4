/** A card of amounts, as a chart that loads by itself and a table with the same numbers. */
import { Group, SegmentedControl, Skeleton, Table, Text } from '@mantine/core';
import { lazy, Suspense, useState, type ReactNode } from 'react';
import { decimalsOfAll } from '../format.ts';
import { Card } from './page.tsx';
import { Money } from './values.tsx';

const Chart = lazy(() => import('./chart.tsx'));

export interface Bar {
  readonly label: string;
  readonly amount: number;
}

interface BarsProps {
  readonly title: string;
  readonly aside?: ReactNode;
  readonly bars: readonly Bar[];
  /** What is said when all of them are nothing: an empty chart says less. */
  readonly empty: string;
  /** What the labels are, and what the amounts are. */
  readonly what: string;
  readonly of: string;
  readonly horizontal?: boolean;
}

export function BarsCard(props: BarsProps) {
  const { title, aside, bars, empty, what, of, horizontal = false } = props;
  const [view, setView] = useState('chart');
  const decimals = decimalsOfAll(bars.map(({ amount }) => amount));
  const height = horizontal ? Math.max(120, bars.length * 36 + 40) : 240;
  if (bars.every(({ amount }) => amount === 0)) {
    return (
      <Card title={title} aside={aside}>
        <Text c="dimmed">{empty}</Text>
      </Card>
    );
  }
  return (
    <Card
      title={title}
      aside={
        <Group gap="xs">
          {aside}
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
        </Group>
      }
    >
      {view === 'chart' ? (
        <Suspense fallback={<Skeleton height={height} />}>
          <Chart bars={bars} of={of} horizontal={horizontal} height={height} />
        </Suspense>
      ) : (
        <Table.ScrollContainer
          minWidth={260}
          type="native"
          mah={320}
          tabIndex={0}
          role="region"
          aria-label={`${of} by ${what.toLowerCase()}`}
        >
          <Table>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>{what}</Table.Th>
                <Table.Th className="money">{of}</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
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
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
    </Card>
  );
}
