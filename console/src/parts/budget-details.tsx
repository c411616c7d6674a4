/** One budget: its limits, which can be changed, its closing and reopening, its spend keys and what they spent. */
import { Anchor, Badge, Button, Group, SegmentedControl, Stack, Table, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useState } from 'react';
import { MICROS_PER_DOLLAR } from '../../../src/domain/money.ts';
import type { Budget, BudgetUsage } from '../answers.ts';
import { write } from '../api.ts';
import { decimalsOfAll, plural, utcDate } from '../format.ts';
import { ApprovedDevelopers } from './approved-developers.tsx';
import { ChangeBudgetForm } from './budget-form.tsx';
import { BudgetRefusalsCard } from './budget-refusals.tsx';
import { CancelButton, FormDialog, useFormRequest } from './form-dialog.tsx';
import { KeyCard } from './keys.tsx';
import { PagedList, ScrollTable, usePages, everyPage } from './lists.tsx';
import { Card } from './page.tsx';
import { RELEASE, ReleaseForm, ReleaseHolds, useReadBudgetsAgain } from './release-holds.tsx';
import { Snippets, spendKeySnippets } from './snippets.tsx';
import { Failed } from './states.tsx';
import { Id, Money, Time } from './values.tsx';

const POLL_MS = 10_000;
const COLORS = { active: 'green', closed: 'gray', expired: 'gray' } as const;
const NAMES = { active: 'Active', closed: 'Closed', expired: 'Expired' } as const;

export function BudgetState({ status }: Pick<Budget, 'status'>) {
  return (
    <Badge variant="dot" color={COLORS[status]} tt="none" fw={500}>
      {NAMES[status]}
    </Badge>
  );
}

export function BudgetDetails({
  budget,
  onAddBelow,
}: {
  readonly budget: Budget;
  readonly onAddBelow: () => void;
}) {
  const [asked, setAsked] = useState<'change' | 'close' | 'release' | 'reopen'>();
  const done = () => setAsked(undefined);
  return (
    <>
      <Card
        title={budget.name}
        aside={
          budget.status === 'closed' ? (
            <Group gap="xs">
              {budget.limitsConsumerKeys && (
                <Button size="xs" variant="default" onClick={() => setAsked('reopen')}>
                  {REOPEN}
                </Button>
              )}
              <Button size="xs" variant="default" onClick={() => setAsked('release')}>
                {RELEASE}
              </Button>
            </Group>
          ) : (
            <Group gap="xs">
              {budget.status === 'active' && (
                <Button size="xs" variant="default" onClick={onAddBelow}>
                  Add a budget below
                </Button>
              )}
              <Button size="xs" variant="default" onClick={() => setAsked('change')}>
                Edit limits
              </Button>
              <Button size="xs" variant="default" onClick={() => setAsked('close')}>
                Close
              </Button>
            </Group>
          )
        }
      >
        <Stack gap="xs">
          <Group gap="sm">
            <BudgetState status={budget.status} />
            <Id id={budget.id} />
          </Group>
          <Limits budget={budget} />
        </Stack>
        <FormDialog opened={asked === 'change'} onClose={done} title="Edit limits">
          {asked === 'change' && <ChangeBudgetForm budget={budget} onDone={done} />}
        </FormDialog>
        <FormDialog opened={asked === 'close'} onClose={done} title="Close budget">
          {asked === 'close' && <CloseForm budget={budget} onDone={done} />}
        </FormDialog>
        <FormDialog opened={asked === 'reopen'} onClose={done} title={REOPEN}>
          {asked === 'reopen' && <ReopenForm budget={budget} onDone={done} />}
        </FormDialog>
        <FormDialog opened={asked === 'release'} onClose={done} title={RELEASE}>
          {asked === 'release' && (
            <ReleaseForm
              path={closing(budget)}
              of="the keys of this budget and of all budgets below it"
              onDone={done}
            />
          )}
        </FormDialog>
      </Card>
      {budget.status !== 'closed' && <ApprovedDevelopers budget={budget} />}
      <KeyCard
        key={budget.id}
        kind="consumer"
        title="Spend keys"
        empty={
          budget.status === 'active'
            ? 'Create a key and copy it into your MCP client.'
            : `The budget is ${budget.status}, so it gets no keys.`
        }
        budget={budget}
        snippet={(key) => <Snippets snippets={spendKeySnippets(key)} />}
      />
      <Spending budget={budget} />
      <BudgetRefusalsCard budget={budget} />
    </>
  );
}

function Limits({ budget }: { readonly budget: Budget }) {
  const { used, limit, window, maxPerCall, maxLease, remaining, expiresAt, tools, developers } =
    budget;
  return (
    <>
      <Text>
        <Money dollars={used} /> spent or held
        {limit !== null && (
          <>
            {' '}
            of <Money dollars={limit} />
          </>
        )}
        {remaining !== null && budget.status === 'active' && (
          <>
            , <Money dollars={remaining} /> left{leftBy(budget)}
          </>
        )}
      </Text>
      {window && (
        <Text size="sm" c="dimmed">
          <Money dollars={window.used} /> of <Money dollars={window.limit} /> in this {window.per},
          until <Time iso={window.resetsAt} />
        </Text>
      )}
      {maxPerCall !== null && (
        <Text size="sm" c="dimmed">
          At most <Money dollars={maxPerCall} /> for one call
        </Text>
      )}
      {maxLease !== null && (
        <Text size="sm" c="dimmed">
          At most <Money dollars={maxLease} /> for one lease
        </Text>
      )}
      {budget.allowLeases && (
        <Text size="sm" c="dimmed">
          Developers may take leases with its keys
        </Text>
      )}
      {tools !== null && (
        <Text size="sm" c="dimmed" className="breaks">
          Only these tools: <bdi>{tools.join(', ')}</bdi>
        </Text>
      )}
      {developers !== null && (
        <Text size="sm" c="dimmed" className="breaks">
          Only these developers: <bdi>{developers.join(', ')}</bdi>
        </Text>
      )}
      {budget.mayDelegate && (
        <Text size="sm" c="dimmed">
          Its keys may create budgets and keys below it
        </Text>
      )}
      {budget.approveDevelopers && (
        <Text size="sm" c="dimmed">
          A developer needs your approval before its first charge
        </Text>
      )}
      {expiresAt !== null && (
        <Text size="sm" c="dimmed">
          {budget.status === 'expired' ? 'Expired on' : 'Works until'} <Time iso={expiresAt} />
        </Text>
      )}
    </>
  );
}

/** Which limit leaves the least, unless it is the total limit, which stands beside it. */
function leftBy({ limit, used, window, remaining }: Budget): string {
  const leaves = (dollars: number) => microsOf(dollars) <= microsOf(remaining ?? 0);
  if (limit !== null && leaves(limit - used)) return '';
  return window !== null && leaves(window.limit - window.used)
    ? ` in this ${window.per}`
    : ' by the limit of a budget above it';
}

function microsOf(dollars: number): number {
  return Math.round(dollars * MICROS_PER_DOLLAR);
}

function closing({ id }: Budget): string {
  return `/v1/budgets/${id}/close`;
}

function CloseForm({ budget, onDone }: { readonly budget: Budget; readonly onDone: () => void }) {
  const [releaseHolds, setReleaseHolds] = useState(false);
  const readAgain = useReadBudgetsAgain();
  const close = useFormRequest({
    mutationFn: () => write<Budget>(closing(budget), { releaseHolds }),
    onSuccess: () => {
      notifications.show({ message: 'The budget was closed.' });
      onDone();
    },
    onSettled: readAgain,
  });
  return (
    <Stack gap="md">
      <Text className="breaks">
        The keys of{' '}
        <b>
          <bdi>{budget.name}</bdi>
        </b>{' '}
        and of all budgets below it stop working within a second.{' '}
        {budget.limitsConsumerKeys
          ? 'The developer can no longer charge your consumer keys, even without a daily limit, until you allow it again on this page.'
          : 'This cannot be undone.'}
      </Text>
      <ReleaseHolds value={releaseHolds} onChange={setReleaseHolds} />
      {close.error && <Failed error={close.error} />}
      <Group justify="flex-end">
        <CancelButton />
        <Button color="red.9" loading={close.isPending} onClick={() => close.mutate()}>
          Close budget
        </Button>
      </Group>
    </Stack>
  );
}

const REOPEN = 'Allow developer again';

/** Only for a budget that limits one developer’s charges to consumer keys. */
function ReopenForm({ budget, onDone }: { readonly budget: Budget; readonly onDone: () => void }) {
  const readAgain = useReadBudgetsAgain();
  const reopen = useFormRequest({
    mutationFn: () => write<Budget>(`/v1/budgets/${budget.id}/reopen`),
    onSuccess: () => {
      notifications.show({ message: 'The developer is no longer blocked.' });
      onDone();
    },
    onSettled: readAgain,
  });
  return (
    <Stack gap="md">
      <Text className="breaks">
        The developer of{' '}
        <b>
          <bdi>{budget.name}</bdi>
        </b>{' '}
        can charge your consumer keys again within a second: within the limits of this budget if you
        have set a daily limit for each developer, and without a limit if you have not. Its spend
        keys and the budgets below it stay closed.
      </Text>
      {reopen.error && <Failed error={reopen.error} />}
      <Group justify="flex-end">
        <CancelButton />
        <Button loading={reopen.isPending} onClick={() => reopen.mutate()}>
          {REOPEN}
        </Button>
      </Group>
    </Stack>
  );
}

const GROUPS = [
  { value: 'tool', label: 'Tool' },
  { value: 'key', label: 'Key' },
  { value: 'developer', label: 'Developer' },
  { value: 'day', label: 'Day' },
];

type Row = BudgetUsage['usage'][number];

function Spending({ budget }: { readonly budget: Budget }) {
  const [by, setBy] = useState('tool');
  const path = `/v1/budgets/${budget.id}/usage`;
  const list = usePages<BudgetUsage>({
    queryKey: ['budget-usage', budget.id, by],
    path: `${path}?by=${by}&limit=100`,
    pollMs: everyPage(POLL_MS),
  });
  const rows = list.data?.pages.flatMap((page) => page.usage) ?? [];
  // The total of all pages.
  const total = list.data?.pages[0]?.total;
  return (
    <Card
      title="Spending"
      flush
      aside={
        <Group gap="xs">
          <Anchor href={`${path}.csv`} size="sm" download>
            Download CSV
          </Anchor>
          <SegmentedControl
            size="xs"
            aria-label="Show spending by"
            data={GROUPS}
            value={by}
            onChange={setBy}
          />
        </Group>
      }
    >
      {total && (
        <Text px={{ base: 'md', xs: 'lg' }} pb="sm">
          <Money dollars={total.spent} /> in {plural(total.charges, 'charge')}, net of refunds
        </Text>
      )}
      <PagedList list={list} isEmpty={rows.length === 0} empty={null}>
        <SpendingTable rows={rows} />
      </PagedList>
    </Card>
  );
}

function SpendingTable({ rows }: { readonly rows: readonly Row[] }) {
  const decimals = decimalsOfAll(rows.map(({ spent }) => spent));
  return (
    <ScrollTable
      label="Spending"
      minWidth={280}
      head={
        <>
          <Table.Th>What</Table.Th>
          <Table.Th className="money">Charges</Table.Th>
          <Table.Th className="money">Spent</Table.Th>
        </>
      }
    >
      {rows.map((each) => (
        <Table.Tr key={nameOf(each)}>
          <Table.Td>
            <bdi className="breaks">{labelOf(each)}</bdi>
          </Table.Td>
          <Table.Td className="money">{each.charges.toLocaleString('en-US')}</Table.Td>
          <Table.Td className="money">
            <Money dollars={each.spent} decimals={decimals} />
          </Table.Td>
        </Table.Tr>
      ))}
    </ScrollTable>
  );
}

function nameOf({ tool, keyId, developerId, from }: Row): string {
  return tool ?? keyId ?? developerId ?? from ?? '';
}

function labelOf(each: Row): string {
  if (each.from !== undefined) return `${utcDate(each.from)} (UTC)`;
  return each.keyName ?? nameOf(each);
}
