/** Finds accounts by an email address, or by an id of ours or of Stripe. A charge has two: who paid, and who earned. */
import { Anchor, Button, Group, Stack, Table, Text, TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { uuidOf } from '../../../src/domain/ids.ts';
import { FOUND_MAX } from '../../../src/domain/operators.ts';
import type { OperatorAccounts, OperatorCharge } from '../answers.ts';
import { read } from '../api.ts';
import { decimalsOfAll } from '../format.ts';
import { ScrollTable } from '../parts/lists.tsx';
import { lacksSecondFactor, SecondFactorNote } from '../parts/operator.tsx';
import { Card, Page } from '../parts/page.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { Id, Money, RefundableAmount, Time } from '../parts/values.tsx';

export function OperatorAccountsPage() {
  const { query } = useSearch({ from: '/shell/operator/accounts' });
  const navigate = useNavigate();
  const [text, setText] = useState(query ?? '');
  // Back in the history, or by the navigation.
  useEffect(() => setText(query ?? ''), [query]);
  const found = useQuery({
    queryKey: ['operator-accounts', query],
    queryFn: () =>
      read<OperatorAccounts>(`/v1/operator/accounts?query=${encodeURIComponent(query ?? '')}`),
    enabled: query !== undefined,
  });
  return (
    <Page title="Accounts">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const wanted = text.trim();
          void navigate({ to: '/operator/accounts', search: wanted ? { query: wanted } : {} });
        }}
      >
        <Group gap="sm" align="flex-end">
          <TextInput
            label="Email or id"
            placeholder="ada@example.com, chg_…, tu_…, pi_…"
            maxLength={254}
            style={{ flex: '1 1 16rem', maxWidth: 480 }}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
          />
          <Button type="submit" leftSection={<IconSearch size={16} />}>
            Find
          </Button>
        </Group>
      </form>
      <SecondFactorNote error={found.error} />
      {query !== undefined && !lacksSecondFactor(found.error) && (
        <Loaded query={found}>
          {({ accounts }) => (
            <>
              {uuidOf('charge', query) !== undefined && accounts.length > 0 && (
                <FoundCharge id={query} accounts={accounts} />
              )}
              <Found accounts={accounts} />
            </>
          )}
        </Loaded>
      )}
    </Page>
  );
}

/** The charge that a customer quotes: in the lists of its accounts it is one of many. */
function FoundCharge({ id, accounts }: OperatorAccounts & { readonly id: string }) {
  const charge = useQuery({
    queryKey: ['operator-charge', id],
    queryFn: () => read<OperatorCharge>(`/v1/operator/charges/${id}`),
  });
  return (
    <Card title="Charge">
      <Loaded query={charge}>
        {({ tool, amount, refunded, createdAt, consumerId, developerId }) => (
          <Stack gap="xs">
            <Id id={id} />
            <Text size="sm" className="breaks">
              <bdi>{tool}</bdi>, <Time iso={createdAt} />
            </Text>
            <Text size="sm" component="div">
              <RefundableAmount
                amount={amount}
                refunded={refunded}
                decimals={decimalsOfAll([amount])}
              />
            </Text>
            <Party role="Paid by" account={accounts.find((a) => a.consumerId === consumerId)} />
            <Party role="Earned by" account={accounts.find((a) => a.developerId === developerId)} />
          </Stack>
        )}
      </Loaded>
    </Card>
  );
}

interface PartyProps {
  readonly role: string;
  readonly account: OperatorAccounts['accounts'][number] | undefined;
}

function Party({ role, account }: PartyProps) {
  return (
    <Text size="sm" className="breaks">
      {role} {account?.email ?? 'an account that is not found'}
    </Text>
  );
}

function Found({ accounts }: OperatorAccounts) {
  if (accounts.length === 0) {
    return (
      <Card>
        <Empty icon={<IconSearch size={22} />} title="No account found">
          Type the beginning of an email address, or the whole id of an account, a consumer, a
          developer, a top-up, a charge, a budget, a key, or a payment at Stripe.
        </Empty>
      </Card>
    );
  }
  const decimals = decimalsOfAll(accounts.map(({ balance }) => balance));
  return (
    <Card title="Found" flush>
      <ScrollTable
        label="Accounts"
        minWidth={300}
        head={
          <>
            <Table.Th>Email</Table.Th>
            <Table.Th visibleFrom="xs">Created</Table.Th>
            <Table.Th className="money">Balance</Table.Th>
          </>
        }
      >
        {accounts.map(({ id, email, balance, createdAt }) => (
          <Table.Tr key={id}>
            <Table.Td>
              <Anchor
                size="sm"
                className="breaks"
                renderRoot={(props) => (
                  <Link to="/operator/accounts/$accountId" params={{ accountId: id }} {...props} />
                )}
              >
                {email}
              </Anchor>
            </Table.Td>
            <Table.Td visibleFrom="xs">
              <Time iso={createdAt} relative />
            </Table.Td>
            <Table.Td className="money">
              <Money dollars={balance} decimals={decimals} />
            </Table.Td>
          </Table.Tr>
        ))}
      </ScrollTable>
      {accounts.length === FOUND_MAX && (
        <Text size="sm" c="dimmed" p="md">
          Only the first {FOUND_MAX} are shown.
        </Text>
      )}
    </Card>
  );
}
