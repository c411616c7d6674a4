/** What a developer's callers were refused, by code and tool, with the request ids to quote. */
import { Anchor, Code, Group, SegmentedControl, Select, Stack, Table, Text } from '@mantine/core';
import { IconCircleCheck } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { Refusals } from '../answers.ts';
import { read } from '../api.ts';
import { ScrollTable } from '../parts/lists.tsx';
import { Card, Page } from '../parts/page.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { CopyIcon, Time } from '../parts/values.tsx';

const RANGES = [
  { value: '24', label: '24 hours' },
  { value: '168', label: '7 days' },
  { value: '720', label: '30 days' },
];

export function RefusalsPage() {
  const { hours = '24', code, tool } = useSearch({ from: '/shell/developer/refusals' });
  const navigate = useNavigate();
  const show = (changed: {
    hours?: string;
    code?: string | undefined;
    tool?: string | undefined;
  }) =>
    void navigate({
      to: '/developer/refusals',
      search: { hours: hours === '24' ? undefined : hours, code, tool, ...changed },
    });
  const refusals = useQuery({
    queryKey: ['refusals', hours],
    queryFn: () => read<Refusals>(`/v1/refusals?hours=${encodeURIComponent(hours)}`),
    refetchInterval: 10_000,
  });
  return (
    <Page
      title="Refused calls"
      intro="Calls with your live secret keys that were refused (4xx). No money moved, except that the first request may still be charged after idempotency_key_in_use."
    >
      <Group gap="sm" align="flex-end">
        <SegmentedControl
          aria-label="Time"
          value={hours}
          onChange={(value) => show({ hours: value === '24' ? undefined : value })}
          data={RANGES}
        />
        <Filter
          label="Error"
          all="All errors"
          value={code}
          found={refusals.data?.refusals.map((each) => each.code)}
          onChange={(value) => show({ code: value })}
        />
        <Filter
          label="Tool"
          all="All tools"
          value={tool}
          found={refusals.data?.refusals.map((each) => each.tool)}
          onChange={(value) => show({ tool: value })}
        />
      </Group>
      <Card flush>
        <Loaded query={refusals}>
          {({ refusals: all }) => {
            const found = all.filter(
              (each) =>
                (code === undefined || each.code === code) &&
                (tool === undefined || each.tool === tool),
            );
            return found.length === 0 ? (
              <Empty icon={<IconCircleCheck size={22} />} title="No refused calls">
                {all.length > 0
                  ? 'No refused call matches these filters.'
                  : 'No call with your live secret keys was refused in this period.'}
              </Empty>
            ) : (
              <RefusalTable refusals={found} />
            );
          }}
        </Loaded>
      </Card>
    </Page>
  );
}

interface FilterProps {
  readonly label: string;
  readonly all: string;
  readonly value: string | undefined;
  readonly found: readonly (string | null)[] | undefined;
  readonly onChange: (value: string | undefined) => void;
}

/** Shows only one of the values that were found; what the URL names stays, even if nothing has it. */
function Filter({ label, all, value, found = [], onChange }: FilterProps) {
  const values = [...found, value].filter((each) => each !== null && each !== undefined);
  return (
    <Select
      aria-label={label}
      searchable
      allowDeselect={false}
      data={[{ value: '', label: all }, ...[...new Set(values)].toSorted()]}
      value={value ?? ''}
      onChange={(chosen) => onChange(chosen || undefined)}
    />
  );
}

function RefusalTable({ refusals }: Refusals) {
  return (
    <ScrollTable
      label="Refused calls"
      stacks
      minWidth={560}
      head={
        <>
          <Table.Th>Error</Table.Th>
          <Table.Th className="money">Count</Table.Th>
          <Table.Th>Last</Table.Th>
          <Table.Th>Request ids</Table.Th>
        </>
      }
    >
      {refusals.map(({ code, tool, count, lastAt, requestIds }) => (
        <Table.Tr key={`${code} ${tool}`} style={{ verticalAlign: 'top' }}>
          <Table.Td>
            <Anchor size="sm" href={`/docs/errors/${code}`} target="_blank">
              {code}
            </Anchor>
            {tool !== null && (
              <Text size="xs" c="dimmed">
                <bdi className="one-line" title={tool}>
                  {tool}
                </bdi>
              </Text>
            )}
          </Table.Td>
          <Table.Td data-label="Count" className="money">
            {count.toLocaleString('en-US')}
          </Table.Td>
          <Table.Td data-label="Last">
            <Time iso={lastAt} relative />
          </Table.Td>
          <Table.Td data-label="Request ids">
            <RequestIds ids={requestIds} />
          </Table.Td>
        </Table.Tr>
      ))}
    </ScrollTable>
  );
}

/** The last one; the others, which mostly look the same, on demand. */
function RequestIds({ ids }: { readonly ids: readonly string[] }) {
  const [last = '', ...others] = ids;
  return (
    <Stack gap={2}>
      <RequestId id={last} />
      {others.length > 0 && (
        <details>
          <summary>{others.length} earlier</summary>
          {others.map((id) => (
            <RequestId key={id} id={id} />
          ))}
        </details>
      )}
    </Stack>
  );
}

function RequestId({ id }: { readonly id: string }) {
  return (
    <span style={{ display: 'flex', alignItems: 'center', gap: 4 }}>
      <Code>{id}</Code>
      <CopyIcon value={id} label="Copy request id" />
    </span>
  );
}
