/** What the spend keys of a budget were refused, by key and error code. */
import { Anchor, SegmentedControl, Table } from '@mantine/core';
import { IconCircleCheck } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Budget, BudgetRefusals } from '../answers.ts';
import { read } from '../api.ts';
import { ScrollTable } from './lists.tsx';
import { Card } from './page.tsx';
import { Empty, Loaded } from './states.tsx';
import { Time } from './values.tsx';

const RANGES = [
  { value: '24', label: '24 hours' },
  { value: '168', label: '7 days' },
];

export function BudgetRefusalsCard({ budget }: { readonly budget: Budget }) {
  const [hours, setHours] = useState('24');
  const refusals = useQuery({
    queryKey: ['budget-refusals', budget.id, hours],
    queryFn: () => read<BudgetRefusals>(`/v1/budgets/${budget.id}/refusals?hours=${hours}`),
    refetchInterval: 10_000,
  });
  return (
    <Card
      title="Refused calls"
      flush
      aside={
        <SegmentedControl
          size="xs"
          aria-label="Show refused calls of the last"
          data={RANGES}
          value={hours}
          onChange={setHours}
        />
      }
    >
      <Loaded query={refusals}>
        {({ refusals: found }) =>
          found.length === 0 ? (
            <Empty icon={<IconCircleCheck size={22} />} title="No refused calls">
              No calls with spend keys of this budget were refused in this period.
            </Empty>
          ) : (
            <RefusalTable refusals={found} />
          )
        }
      </Loaded>
    </Card>
  );
}

function RefusalTable({ refusals }: Pick<BudgetRefusals, 'refusals'>) {
  return (
    <ScrollTable
      label="Refused calls"
      minWidth={360}
      head={
        <>
          <Table.Th>Error</Table.Th>
          <Table.Th>Key</Table.Th>
          <Table.Th className="money">Calls</Table.Th>
          <Table.Th>Last refused</Table.Th>
        </>
      }
    >
      {refusals.map(({ keyId, keyName, code, count, lastAt }) => (
        <Table.Tr key={`${keyId} ${code}`}>
          <Table.Td>
            <Anchor size="sm" href={`/docs/errors/${code}`} target="_blank">
              {code}
            </Anchor>
          </Table.Td>
          <Table.Td>
            <bdi className="breaks">{keyName ?? keyId}</bdi>
          </Table.Td>
          <Table.Td className="money">{count.toLocaleString('en-US')}</Table.Td>
          <Table.Td>
            <Time iso={lastAt} relative />
          </Table.Td>
        </Table.Tr>
      ))}
    </ScrollTable>
  );
}
