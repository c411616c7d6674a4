/** One account for an operator: why its balance is what it is, and what can be corrected. */
import { Button, SimpleGrid, Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useState } from 'react';
import type { OperatorAccount, OperatorTopUps } from '../answers.ts';
import { read } from '../api.ts';
import { decimalsOfAll, movementText, usd } from '../format.ts';
import { ScrollTable } from '../parts/lists.tsx';
import { FormDialog } from '../parts/form-dialog.tsx';
import { AdjustForm, RefundForm } from '../parts/operator-forms.tsx';
import { AccountLists } from '../parts/operator-lists.tsx';
import { lacksSecondFactor, Outside, SecondFactorNote } from '../parts/operator.tsx';
import { Card, Page } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { Id, Money, Time } from '../parts/values.tsx';

export function OperatorAccountPage() {
  const { accountId: named } = useParams({ from: '/shell/operator/accounts/$accountId' });
  const accountId = encodeURIComponent(named);
  const account = useQuery({
    queryKey: ['operator-account', accountId],
    queryFn: () => read<OperatorAccount>(`/v1/operator/accounts/${accountId}`),
    refetchInterval: 10_000,
  });
  const [isAdjusting, setAdjusting] = useState(false);
  const [refunding, setRefunding] = useState<OperatorTopUps['topUps'][number]>();
  return (
    <Page
      title={account.data?.email ?? 'Account'}
      aside={account.data && <Button onClick={() => setAdjusting(true)}>Adjust balance</Button>}
    >
      <SecondFactorNote error={account.error} />
      {!lacksSecondFactor(account.error) && (
        <Loaded query={account}>
          {(data) => (
            <>
              <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
                <Books account={data} />
                <Facts account={data} />
              </SimpleGrid>
              <AccountLists accountId={accountId} onRefund={setRefunding} />
              <FormDialog
                opened={isAdjusting}
                onClose={() => setAdjusting(false)}
                title="Adjust balance"
              >
                <AdjustForm account={data} onDone={() => setAdjusting(false)} />
              </FormDialog>
              <FormDialog
                opened={refunding !== undefined}
                onClose={() => setRefunding(undefined)}
                title="Refund top-up"
              >
                {refunding && (
                  <RefundForm topUp={refunding} onDone={() => setRefunding(undefined)} />
                )}
              </FormDialog>
            </>
          )}
        </Loaded>
      )}
    </Page>
  );
}

const KINDS: Readonly<Record<string, string>> = {
  top_up: 'Top-ups',
  adjustment: 'Adjustments',
  refund: 'Refunds of top-ups',
  refund_returned: 'Refunds that failed',
  dispute: 'Taken for lost disputes',
  dispute_returned: 'Disputes won back',
  charge_refund: 'Refunds of charges',
};

/** One refund or dispute of spent money is taken in parts, so their count says nothing. */
const IN_PARTS = new Set(['refund', 'dispute']);

/** Every line is a sum of the ledger, and the last one is what they add up to. */
function Books({ account }: { readonly account: OperatorAccount }) {
  const { movements, credited, spent, heldByHolds, heldByDisputes, openHolds, balance } = account;
  const lines: readonly (readonly [string, number])[] = [
    ...movements.map(
      ({ kind, count, amount }) =>
        [
          (KINDS[kind] ?? movementText(kind)) + (IN_PARTS.has(kind) ? '' : ` (${count})`),
          amount,
        ] as const,
    ),
    ['Charges', 0 - spent],
    [`Open holds (${openHolds})`, 0 - heldByHolds],
    ...(heldByDisputes > 0
      ? [['Open disputes and fraud warnings', 0 - heldByDisputes] as const]
      : []),
  ];
  const decimals = decimalsOfAll([...lines.map(([, amount]) => amount), balance, credited]);
  return (
    <Card title="Balance" flush>
      <ScrollTable
        label="Balance"
        minWidth={240}
        head={
          <>
            <Table.Th>Sum of</Table.Th>
            <Table.Th className="money">Amount</Table.Th>
          </>
        }
      >
        {lines.map(([name, amount]) => (
          <Table.Tr key={name}>
            <Table.Td>{name}</Table.Td>
            <Table.Td className="money">
              <Money dollars={amount} decimals={decimals} />
            </Table.Td>
          </Table.Tr>
        ))}
        <Table.Tr fw={650}>
          <Table.Td>Balance</Table.Td>
          <Table.Td className="money">
            <Money dollars={balance} decimals={decimals} />
          </Table.Td>
        </Table.Tr>
      </ScrollTable>
    </Card>
  );
}

function Facts({ account }: { readonly account: OperatorAccount }) {
  const { id, consumerId, developerId, createdAt, debt, consentCeiling, processorUrl } = account;
  return (
    <Card title="Account" aside={<Outside url={processorUrl} name="Stripe" />}>
      <Stack gap="xs">
        {[id, consumerId, developerId].map((each) => (
          <Id key={each} id={each} />
        ))}
        <Text size="sm">
          Created <Time iso={createdAt} />
        </Text>
        <Text size="sm">
          {consentCeiling === null
            ? 'No consent to payments from the saved card.'
            : `The saved card may be charged up to ${usd(consentCeiling)} a month.`}
        </Text>
        {debt > 0 && (
          <Text size="sm">
            Owes <Money dollars={debt} /> for refunds and disputes.
          </Text>
        )}
        {account.actions.map(({ createdAt: at, kind, amount, reason, failure, operator }) => (
          <Text key={at} size="sm" c="dimmed" className="breaks">
            <Time iso={at} />: {operator} {kind === 'refund' ? 'refunded' : 'adjusted by'}{' '}
            <Money dollars={amount} />. {reason}
            {failure !== null && ` The refund failed: ${failure}`}
          </Text>
        ))}
      </Stack>
    </Card>
  );
}
