/** Monthly statements for consumers and developers. The lines add up from the opening to the closing amount. */
import { Button, Group, SegmentedControl, Select, Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { ConsumerStatement, DeveloperStatement } from '../answers.ts';
import { read } from '../api.ts';
import { decimalsOfAll, movementText, plural, usd, utcDate } from '../format.ts';
import { balanceRead } from '../page-reads.ts';
import { ScrollTable } from '../parts/lists.tsx';
import { Card, Page } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { Money } from '../parts/values.tsx';

const MONTHS_SHOWN = 24;

interface Line {
  readonly key: string;
  readonly what: ReactNode;
  readonly amount: number;
}

export function StatementsPage() {
  const search = useSearch({ from: '/shell/statements' });
  const navigate = useNavigate({ from: '/statements' });
  const months = lastMonths();
  const month = search.month ?? months[0] ?? '';
  const path = `/v1/statements/${encodeURIComponent(month)}`;
  const as = search.as === 'developer' ? 'developer' : 'consumer';
  const statement = useQuery({
    queryKey: ['statement', month, as],
    queryFn: () => read<ConsumerStatement | DeveloperStatement>(`${path}?as=${as}`),
  });
  return (
    <Page
      title="Statements"
      intro="Months and days are in UTC."
      aside={
        <Button variant="default" component="a" href={`${path}.csv?as=${as}`} download>
          Export CSV
        </Button>
      }
    >
      <Group gap="sm" align="flex-end">
        <Select
          label="Month"
          data={[...new Set([...months, month])].map((value) => ({ value, label: nameOf(value) }))}
          value={month}
          allowDeselect={false}
          onChange={(value) => void navigate({ search: { ...search, month: value ?? month } })}
        />
        <SegmentedControl
          aria-label="Statement for"
          value={as}
          onChange={(value) => void navigate({ search: { ...search, as: value } })}
          data={[
            { value: 'consumer', label: 'Balance' },
            { value: 'developer', label: 'Earnings' },
          ]}
        />
      </Group>
      <Card
        flush
        title={nameOf(month)}
        aside={statement.data?.complete === false && <Text c="dimmed">Not final yet</Text>}
      >
        <Loaded query={statement}>{(data) => <Lines lines={linesOf(data)} />}</Loaded>
        {as === 'consumer' && month === months[0] && <DebtAndHeld />}
      </Card>
    </Page>
  );
}

/**
 * No statement has what is owed now: a debt becomes a movement when it is repaid. And none says how much of its closing
 * balance cannot be spent now.
 */
function DebtAndHeld() {
  const { debt = 0, held = 0 } = useQuery(balanceRead).data ?? {};
  return (
    <Stack gap="xs" px={{ base: 'md', xs: 'lg' }} pb={debt > 0 || held > 0 ? 'md' : 0}>
      {debt > 0 && (
        <Text size="sm" c="dimmed">
          You owe <Money dollars={debt} /> for refunded or disputed payments. Your next top-up pays
          this first.
        </Text>
      )}
      {held > 0 && (
        <Text size="sm" c="dimmed">
          The closing balance includes <Money dollars={held} /> on hold for running calls or
          disputed payments.
        </Text>
      )}
    </Stack>
  );
}

function Lines({ lines }: { readonly lines: readonly Line[] }) {
  const decimals = decimalsOfAll(lines.map(({ amount }) => amount));
  return (
    <ScrollTable
      label="Statement"
      minWidth={260}
      head={
        <>
          <Table.Th>Entry</Table.Th>
          <Table.Th className="money">Amount</Table.Th>
        </>
      }
    >
      {lines.map(({ key, what, amount }, index) => (
        <Table.Tr key={key} fw={index === 0 || index === lines.length - 1 ? 600 : undefined}>
          <Table.Td className="breaks">{what}</Table.Td>
          <Table.Td className="money">
            <Money dollars={amount} decimals={decimals} />
          </Table.Td>
        </Table.Tr>
      ))}
    </ScrollTable>
  );
}

function linesOf(statement: ConsumerStatement | DeveloperStatement): Line[] {
  if ('openingBalance' in statement) {
    return [
      { key: 'opening', what: 'Opening balance', amount: statement.openingBalance },
      ...statement.movements.map(({ kind, amount, tax, createdAt }, index) => ({
        key: `movement-${index}`,
        what:
          `${movementText(kind)}, ${utcDate(createdAt)}` +
          (tax === undefined ? '' : `, and ${usd(Math.abs(tax))} tax`),
        amount,
      })),
      ...statement.charges.map(({ tool, charges, amount }) => ({
        key: `tool-${tool}`,
        what: named(tool, plural(charges, 'charge')),
        amount: 0 - amount,
      })),
      { key: 'closing', what: 'Closing balance', amount: statement.closingBalance },
    ];
  }
  return [
    { key: 'opening', what: 'Earned before this month', amount: statement.openingEarnings },
    ...statement.earned.map(({ day, tool, charges, amount }) => ({
      key: `${day}-${tool}`,
      what: named(tool, utcDate(day), plural(charges, 'charge')),
      amount,
    })),
    ...statement.refunds.map(({ day, tool, refunds, amount }) => ({
      key: `refund-${day}-${tool}`,
      what: named(tool, utcDate(day), plural(refunds, 'refund')),
      amount: 0 - amount,
    })),
    { key: 'closing', what: 'Earned in total', amount: statement.closingEarnings },
  ];
}

/** A name that runs right to left must not turn the words behind it. */
function named(tool: string, ...words: readonly string[]): ReactNode {
  return (
    <>
      <bdi>{tool}</bdi>, {words.join(', ')}
    </>
  );
}

function lastMonths(): string[] {
  const now = new Date();
  return Array.from({ length: MONTHS_SHOWN }, (_, back) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back)).toISOString().slice(0, 7),
  );
}

function nameOf(month: string): string {
  const date = new Date(`${month}-01T00:00:00Z`);
  if (Number.isNaN(date.getTime())) return month;
  return date.toLocaleDateString('en-US', { month: 'long', year: 'numeric', timeZone: 'UTC' });
}
