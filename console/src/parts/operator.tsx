/**
 * What the pages for operators share: the second factor that they ask for, a table, and links to where the
 * details are.
 */
import { Alert, Anchor, Group, Table, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { ApiFailure } from '../api.ts';
import { decimalsOfAll } from '../format.ts';
import { ScrollTable } from './lists.tsx';
import { Money, Time } from './values.tsx';

export function lacksSecondFactor(error: Error | null): boolean {
  return error instanceof ApiFailure && error.code === 'second_factor_required';
}

/** What an operator has to do before anything else. */
export function SecondFactorNote({ error }: { readonly error: Error | null }) {
  if (!lacksSecondFactor(error)) return null;
  return (
    <Alert color="orange" title="Turn on two-factor authentication first">
      Operators see every account, so a password alone is not enough.{' '}
      <Anchor component={Link} to="/security" inherit underline="always">
        Go to Security
      </Anchor>
    </Alert>
  );
}

interface LinksProps {
  readonly accountId?: string | null;
  readonly topUpId?: string | null;
  readonly temporalUrl: string | null;
  readonly processorUrl: string | null;
}

interface Thing extends LinksProps {
  readonly since: string;
  readonly amount: number | null;
}

interface ThingsProps<T> {
  readonly label: string;
  readonly things: readonly T[];
  readonly maxHeight?: number;
  readonly nameOf: (thing: T) => ReactNode;
}

/** A table of waiting or stuck items. */
export function Things<T extends Thing>({ label, things, nameOf, ...rest }: ThingsProps<T>) {
  const decimals = decimalsOfAll(things.flatMap(({ amount }) => amount ?? []));
  return (
    <ScrollTable
      label={label}
      {...rest}
      stacks
      minWidth={640}
      head={
        <>
          <Table.Th>What</Table.Th>
          <Table.Th>Since</Table.Th>
          <Table.Th className="money">Amount</Table.Th>
          <Table.Th>Open in</Table.Th>
        </>
      }
    >
      {things.map((thing, index) => (
        <Table.Tr key={index}>
          <Table.Td>{nameOf(thing)}</Table.Td>
          <Table.Td data-label="Since">
            <Time iso={thing.since} relative />
          </Table.Td>
          <Table.Td data-label="Amount" className="money">
            {thing.amount === null ? '–' : <Money dollars={thing.amount} decimals={decimals} />}
          </Table.Td>
          <Table.Td data-label="Open in">
            <OutsideLinks {...thing} />
          </Table.Td>
        </Table.Tr>
      ))}
    </ScrollTable>
  );
}

/** To the account, its workflow in the Temporal UI, and the payment in Stripe's dashboard, as far as they exist. */
export function OutsideLinks({ accountId, topUpId, temporalUrl, processorUrl }: LinksProps) {
  const query = accountId ?? topUpId;
  return (
    <Group gap="0 var(--mantine-spacing-sm)">
      {accountId != null ? (
        <Anchor
          size="sm"
          renderRoot={(props) => (
            <Link to="/operator/accounts/$accountId" params={{ accountId }} {...props} />
          )}
        >
          Account
        </Anchor>
      ) : (
        query != null && (
          <Anchor
            size="sm"
            renderRoot={(props) => <Link to="/operator/accounts" search={{ query }} {...props} />}
          >
            Account
          </Anchor>
        )
      )}
      <Outside url={temporalUrl} name="Temporal" />
      <Outside url={processorUrl} name="Stripe" />
    </Group>
  );
}

export function Outside({ url, name }: { readonly url: string | null; readonly name: string }) {
  if (url === null) {
    return null;
  }
  return (
    <Anchor size="sm" href={url} target="_blank" rel="noreferrer" style={{ whiteSpace: 'nowrap' }}>
      {name}
      <Text span size="xs" aria-hidden>
        {' '}
        ↗
      </Text>
    </Anchor>
  );
}
