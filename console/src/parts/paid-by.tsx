/** The credits that paid for a charge, on its sheet. */
import { Group, Stack, Text } from '@mantine/core';
import type { PaidCharge } from '../answers.ts';
import { decimalsOfAll } from '../format.ts';
import { Field } from './charges.tsx';
import { Id, Money, Time } from './values.tsx';

type Credit = PaidCharge['paidBy'][number];

const SOURCES: Readonly<Record<Credit['source'], string>> = {
  top_up: 'Top-up',
  adjustment: 'Adjustment',
  charge_refund: 'Refund of a charge',
};

export function PaidBy({ credits }: { readonly credits: readonly Credit[] }) {
  const decimals = decimalsOfAll(credits.map(({ amount }) => amount));
  return (
    <Field label="Paid by">
      <Stack component="ul" gap="xs" m={0} p={0} style={{ listStyle: 'none' }}>
        {credits.map(({ source, topUpId, creditedAt, amount }) => (
          <li key={`${creditedAt} ${topUpId}`}>
            <Group justify="space-between" gap="sm" wrap="nowrap">
              <Text size="sm">
                {SOURCES[source]}, <Time iso={creditedAt} />
              </Text>
              <Text size="sm">
                <Money dollars={amount} decimals={decimals} />
              </Text>
            </Group>
            {topUpId !== undefined && <Id id={topUpId} />}
          </li>
        ))}
      </Stack>
    </Field>
  );
}
