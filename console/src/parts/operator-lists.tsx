/** An account for operators: its movements, top-ups, charges, holds and audit log. */
import { Button, Code, Table, Tabs, Text, VisuallyHidden } from '@mantine/core';
import { IconList } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import type {
  OperatorCharges,
  OperatorHolds,
  OperatorMovements,
  OperatorTopUps,
} from '../answers.ts';
import { decimalsOfAll, movementText, paymentText, usd } from '../format.ts';
import { AuditEntries } from './audit-entries.tsx';
import { PagedList, ScrollTable, usePages } from './lists.tsx';
import { OutsideLinks } from './operator.tsx';
import { Card } from './page.tsx';
import { Empty } from './states.tsx';
import { Id, Money, RefundableAmount, Status, Time } from './values.tsx';

interface ListsProps {
  readonly accountId: string;
  readonly onRefund: (topUp: OperatorTopUps['topUps'][number]) => void;
}

export function AccountLists({ accountId, onRefund }: ListsProps) {
  const path = `/v1/operator/accounts/${accountId}`;
  return (
    <Card flush>
      <Tabs defaultValue="movements" keepMounted={false}>
        <Tabs.List px="sm" pt={4}>
          <Tabs.Tab value="movements">Movements</Tabs.Tab>
          <Tabs.Tab value="top-ups">Top-ups</Tabs.Tab>
          <Tabs.Tab value="charges">Charges</Tabs.Tab>
          <Tabs.Tab value="holds">Holds</Tabs.Tab>
          <Tabs.Tab value="audit-log">Audit log</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="movements">
          <Movements path={path} />
        </Tabs.Panel>
        <Tabs.Panel value="top-ups">
          <TopUps path={path} onRefund={onRefund} />
        </Tabs.Panel>
        <Tabs.Panel value="charges">
          <Charges path={path} />
        </Tabs.Panel>
        <Tabs.Panel value="holds">
          <Holds path={path} />
        </Tabs.Panel>
        <Tabs.Panel value="audit-log">
          <AuditEntries path={`/v1/operator/audit-log?accountId=${accountId}&limit=20`} />
        </Tabs.Panel>
      </Tabs>
    </Card>
  );
}

const NONE = (what: string, text = `This account has no ${what} yet.`): ReactNode => (
  <Empty icon={<IconList size={22} />} title={`No ${what}`}>
    {text}
  </Empty>
);

function Movements({ path }: { readonly path: string }) {
  const list = usePages<OperatorMovements>({
    queryKey: ['operator', path, 'movements'],
    path: `${path}/movements?limit=20`,
  });
  const movements = list.data?.pages.flatMap((page) => page.movements) ?? [];
  const decimals = decimalsOfAll(movements.map(({ amount }) => amount));
  return (
    <PagedList list={list} isEmpty={movements.length === 0} empty={NONE('movements')}>
      <ScrollTable
        label="Movements"
        minWidth={300}
        head={
          <>
            <Table.Th>Time</Table.Th>
            <Table.Th>What</Table.Th>
            <Table.Th className="money">Amount</Table.Th>
          </>
        }
      >
        {movements.map(({ id, kind, amount, topUpId, reason, createdAt }) => (
          <Table.Tr key={id}>
            <Table.Td>
              <Time iso={createdAt} />
            </Table.Td>
            <Table.Td>
              {movementText(kind)}
              {(reason ?? topUpId) !== null && (
                <Text size="xs" c="dimmed" className="breaks">
                  {reason ?? topUpId}
                </Text>
              )}
            </Table.Td>
            <Table.Td className="money">
              <Money dollars={amount} decimals={decimals} />
            </Table.Td>
          </Table.Tr>
        ))}
      </ScrollTable>
    </PagedList>
  );
}

function TopUps({ path, onRefund }: { readonly path: string } & Pick<ListsProps, 'onRefund'>) {
  const list = usePages<OperatorTopUps>({
    queryKey: ['operator', path, 'top-ups'],
    path: `${path}/top-ups?limit=20`,
    pollMs: (pages) =>
      pages.some(({ topUps }) => topUps.some(({ status }) => status === 'pending')) && 4_000,
  });
  const topUps = list.data?.pages.flatMap((page) => page.topUps) ?? [];
  const decimals = decimalsOfAll(topUps.map(({ amount }) => amount));
  return (
    <PagedList list={list} isEmpty={topUps.length === 0} empty={NONE('top-ups')}>
      <ScrollTable
        label="Top-ups"
        stacks
        minWidth={640}
        head={
          <>
            <Table.Th>Time</Table.Th>
            <Table.Th>Status</Table.Th>
            <Table.Th className="money">Amount</Table.Th>
            <Table.Th>Open in</Table.Th>
            <Table.Th />
          </>
        }
      >
        {topUps.map((topUp) => (
          <Table.Tr key={topUp.id}>
            <Table.Td>
              <Time iso={topUp.createdAt} />
              <Text size="xs" c="dimmed">
                {paymentText(topUp)}
              </Text>
              <Id id={topUp.id} />
            </Table.Td>
            <Table.Td data-label="Status">
              <Status status={topUp.status} />
              {topUp.status === 'disputed' && topUp.refundable && (
                <Text size="xs" c="dimmed">
                  The bank suspects fraud.{' '}
                  {topUp.refundableAmount > 0 ? 'Refund it, or keep' : 'Keep'} the payment:{' '}
                  <Code>bin/farebox dismiss-warning {topUp.id}</Code>
                </Text>
              )}
              {topUp.failure !== null && (
                <Text size="xs" c="dimmed">
                  {topUp.failure}
                </Text>
              )}
              {topUp.failedRefund !== null && (
                <Text size="xs" c="dimmed" className="breaks">
                  A refund of {usd(topUp.failedRefund.amount)} failed: {topUp.failedRefund.failure}
                </Text>
              )}
            </Table.Td>
            <Table.Td data-label="Amount" className="money">
              <RefundableAmount
                amount={topUp.amount}
                refunded={topUp.refunded}
                decimals={decimals}
              />
            </Table.Td>
            <Table.Td data-label="Open in">
              <OutsideLinks temporalUrl={topUp.temporalUrl} processorUrl={topUp.processorUrl} />
            </Table.Td>
            <Table.Td data-label="" ta="right">
              {topUp.refundableAmount > 0 && (
                <Button size="xs" variant="default" onClick={() => onRefund(topUp)}>
                  Refund <VisuallyHidden>{topUp.id}</VisuallyHidden>
                </Button>
              )}
            </Table.Td>
          </Table.Tr>
        ))}
      </ScrollTable>
    </PagedList>
  );
}

/** What it earned is not in the list. */
const UNPAID = 'This account has paid for no charges yet.';

function Charges({ path }: { readonly path: string }) {
  const list = usePages<OperatorCharges>({
    queryKey: ['operator', path, 'charges'],
    path: `${path}/charges?limit=20`,
  });
  const charges = list.data?.pages.flatMap((page) => page.charges) ?? [];
  const decimals = decimalsOfAll(charges.map(({ amount }) => amount));
  return (
    <PagedList list={list} isEmpty={charges.length === 0} empty={NONE('charges', UNPAID)}>
      <ScrollTable
        label="Charges"
        minWidth={300}
        head={
          <>
            <Table.Th>Time</Table.Th>
            <Table.Th>Tool</Table.Th>
            <Table.Th className="money">Amount</Table.Th>
          </>
        }
      >
        {charges.map(({ id, tool, amount, refunded, developerId, createdAt }) => (
          <Table.Tr key={id}>
            <Table.Td>
              <Time iso={createdAt} />
              <Id id={id} />
            </Table.Td>
            <Table.Td>
              <bdi className="one-line" title={tool}>
                {tool}
              </bdi>
              <Text size="xs" c="dimmed" className="breaks">
                {developerId}
              </Text>
            </Table.Td>
            <Table.Td className="money">
              <RefundableAmount amount={amount} refunded={refunded} decimals={decimals} />
            </Table.Td>
          </Table.Tr>
        ))}
      </ScrollTable>
    </PagedList>
  );
}

function Holds({ path }: { readonly path: string }) {
  const list = usePages<OperatorHolds>({
    queryKey: ['operator', path, 'holds'],
    path: `${path}/holds?limit=20`,
  });
  const holds = list.data?.pages.flatMap((page) => page.holds) ?? [];
  const decimals = decimalsOfAll(holds.flatMap(({ amount, remaining }) => [amount, remaining]));
  return (
    <PagedList list={list} isEmpty={holds.length === 0} empty={NONE('holds')}>
      <ScrollTable
        label="Holds"
        stacks
        minWidth={560}
        head={
          <>
            <Table.Th>Time</Table.Th>
            <Table.Th>Tool</Table.Th>
            <Table.Th>Status</Table.Th>
            <Table.Th className="money">Amount</Table.Th>
            <Table.Th className="money">Still held</Table.Th>
          </>
        }
      >
        {holds.map(({ id, tool, status, amount, remaining, createdAt }) => (
          <Table.Tr key={id}>
            <Table.Td>
              <Time iso={createdAt} />
              <Id id={id} />
            </Table.Td>
            <Table.Td data-label="Tool">
              <bdi className="one-line" title={tool}>
                {tool}
              </bdi>
            </Table.Td>
            <Table.Td data-label="Status">
              <Status status={status} />
            </Table.Td>
            <Table.Td data-label="Amount" className="money">
              <Money dollars={amount} decimals={decimals} />
            </Table.Td>
            <Table.Td data-label="Still held" className="money">
              <Money dollars={remaining} decimals={decimals} />
            </Table.Td>
          </Table.Tr>
        ))}
      </ScrollTable>
    </PagedList>
  );
}
