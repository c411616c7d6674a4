/** The state of the service for operators: which parts answer, what is stuck, and what differs from Stripe. */
import { Badge, Box, Group, SimpleGrid, Stack, Table, Text } from '@mantine/core';
import { IconCircleCheck } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { paymentsText } from '../../../src/domain/difference.ts';
import { LISTED_MAX } from '../../../src/domain/operators.ts';
import type { OperatorStatus } from '../answers.ts';
import { read } from '../api.ts';
import { decimalsOfAll } from '../format.ts';
import { ScrollTable } from '../parts/lists.tsx';
import { lacksSecondFactor, OutsideLinks, SecondFactorNote, Things } from '../parts/operator.tsx';
import { DIFFERENCES_ID, detailText, WaitingCounts } from '../parts/operator-waiting.tsx';
import { Card, Page } from '../parts/page.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { Money, Time } from '../parts/values.tsx';

const POLL_MS = 10_000;
/** A long list leaves room for the cards below it. */
const LIST_HEIGHT = 480;

export function OperatorPage() {
  const status = useQuery({
    queryKey: ['operator-status'],
    queryFn: () => read<OperatorStatus>('/v1/operator/status'),
    refetchInterval: POLL_MS,
  });
  return (
    <Page
      title="Service"
      intro="The state of its parts, waiting and stuck work, and differences in the books."
    >
      <SecondFactorNote error={status.error} />
      {!lacksSecondFactor(status.error) && (
        <Loaded query={status}>{(data) => <Status status={data} />}</Loaded>
      )}
    </Page>
  );
}

function Status({ status }: { readonly status: OperatorStatus }) {
  const { postgres, temporal, waiting, reconciledUntil } = status;
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="lg">
        <PartState name="PostgreSQL" state={postgres} />
        <PartState name="Temporal" state={temporal} />
        <Card>
          <Text c="dimmed">Compared with Stripe</Text>
          <Text fz={22} fw={650}>
            {reconciledUntil === null ? 'Never' : <Time iso={reconciledUntil} relative />}
          </Text>
        </Card>
      </SimpleGrid>
      <Stuck items={status.stuck} />
      <Box id={DIFFERENCES_ID}>
        <Differences differences={status.differences} />
      </Box>
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
        <WaitingCounts waiting={waiting} />
        <Examinations examinations={status.examinations} />
      </SimpleGrid>
    </>
  );
}

const STATES: Readonly<Record<string, string>> = {
  up: 'Up',
  down: 'Not responding',
  no_namespace: 'No namespace',
  read_only: 'Read-only',
  not_durable: 'Not durable',
};

function PartState({ name, state }: { readonly name: string; readonly state: string }) {
  return (
    <Card>
      <Text c="dimmed">{name}</Text>
      <Text fz={22} fw={650} {...(state === 'up' ? {} : { c: 'red' })}>
        {STATES[state] ?? state}
      </Text>
    </Card>
  );
}

const STUCK: Readonly<Record<string, string>> = {
  top_up: 'Top-up does not finish',
  refund: 'Refund does not finish',
  notice: 'Notice cannot be delivered',
};

function Stuck({ items }: { readonly items: OperatorStatus['stuck'] }) {
  return (
    <Problems title="Stuck" count={items.length} none="Nothing is stuck">
      <Things
        label="Stuck"
        things={items}
        maxHeight={LIST_HEIGHT}
        nameOf={({ kind, detail, topUpId }) => (
          <>
            {STUCK[kind]}
            <Text size="xs" c="dimmed">
              {detailText(detail)}
              {topUpId !== null && ` · ${topUpId}`}
            </Text>
          </>
        )}
      />
    </Problems>
  );
}

function Differences({ differences }: { readonly differences: OperatorStatus['differences'] }) {
  const decimals = decimalsOfAll(
    differences.flatMap(({ processor, ledger }) => [processor, ledger]),
  );
  return (
    <Problems title="Differences from Stripe" count={differences.length} none="No differences">
      <ScrollTable
        label="Differences from Stripe"
        maxHeight={LIST_HEIGHT}
        stacks
        minWidth={640}
        head={
          <>
            <Table.Th>What</Table.Th>
            <Table.Th>Since</Table.Th>
            <Table.Th className="money">Stripe</Table.Th>
            <Table.Th className="money">Ledger</Table.Th>
            <Table.Th>Open in</Table.Th>
          </>
        }
      >
        {differences.map((each) => (
          <Table.Tr key={`${each.topUpId} ${each.kind}`}>
            <Table.Td>
              {each.text.charAt(0).toUpperCase() + each.text.slice(1)}
              <Text size="xs" c="dimmed">
                {each.topUpId}
                <br />
                {paymentsText(each.paymentIntentIds, each.creditedPaymentIntentId)}
              </Text>
            </Table.Td>
            <Table.Td data-label="Since">
              <Time iso={each.since} relative />
            </Table.Td>
            <Table.Td data-label="Stripe" className="money">
              <Money dollars={each.processor} decimals={decimals} />
            </Table.Td>
            <Table.Td data-label="Ledger" className="money">
              <Money dollars={each.ledger} decimals={decimals} />
            </Table.Td>
            <Table.Td data-label="Open in">
              <OutsideLinks {...each} topUpId={each.topUpId} />
            </Table.Td>
          </Table.Tr>
        ))}
      </ScrollTable>
    </Problems>
  );
}

interface ProblemsProps {
  readonly title: string;
  readonly count: number;
  readonly none: string;
  readonly children: ReactNode;
}

function Problems({ title, count, none, children }: ProblemsProps) {
  if (count > 0) {
    const isPart = count >= LISTED_MAX;
    return (
      <Card
        title={title}
        flush
        aside={<Badge color="red.9">{isPart ? `${LISTED_MAX}+` : count}</Badge>}
      >
        {children}
        {isPart && (
          <Text size="sm" c="dimmed" p="md">
            At most {LISTED_MAX} of each kind are listed, the oldest first.
          </Text>
        )}
      </Card>
    );
  }
  return (
    <Card title={title}>
      <Group gap="xs">
        <IconCircleCheck size={18} color="var(--mantine-color-green-7)" aria-hidden />
        <Text size="sm">{none}.</Text>
      </Group>
    </Card>
  );
}

function Examinations({ examinations }: { readonly examinations: OperatorStatus['examinations'] }) {
  return (
    <Card title="Last check of the books" flush={examinations.length > 0}>
      {examinations.length === 0 ? (
        <Empty icon={<IconCircleCheck size={22} />} title="Not checked yet">
          Run <code>farebox doctor</code>. Its result appears here.
        </Empty>
      ) : (
        <ScrollTable
          label="Last check of the books"
          minWidth={260}
          head={
            <>
              <Table.Th>Part</Table.Th>
              <Table.Th>Ended</Table.Th>
              <Table.Th>Result</Table.Th>
            </>
          }
        >
          {examinations.map(({ part, endedAt, findings }) => (
            <Table.Tr key={part}>
              <Table.Td>{part.charAt(0).toUpperCase() + part.slice(1)}</Table.Td>
              <Table.Td>
                <Time iso={endedAt} relative />
              </Table.Td>
              <Table.Td>
                {findings.length === 0 ? (
                  'Passed'
                ) : (
                  <Stack gap={4}>
                    {findings.map(({ check, subject, detail }, index) => (
                      <Text key={index} size="sm" c="red" className="breaks">
                        {check}: {subject}, {detail}
                      </Text>
                    ))}
                  </Stack>
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </ScrollTable>
      )}
    </Card>
  );
}
