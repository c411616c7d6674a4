/** Every charge by the developer. The drawer with its details can refund it. */
import { Button, Group, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconReceipt } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { ChargeRefund, Charges } from '../answers.ts';
import { read } from '../api.ts';
import { usd } from '../format.ts';
import {
  ChargeFilters,
  ChargeSheet,
  ChargeTable,
  Field,
  FindCharge,
  queryOf,
  type Charge,
} from '../parts/charges.tsx';
import { useFormRequest } from '../parts/form-dialog.tsx';
import { PagedList, usePages, whileOnePage } from '../parts/lists.tsx';
import { Card, Page } from '../parts/page.tsx';
import { Empty, Failed } from '../parts/states.tsx';
import { writeOnce } from '../retry-key.ts';

export function DeveloperChargesPage() {
  const { charge, consumerId, ...filter } = useSearch({ from: '/shell/developer/charges' });
  const navigate = useNavigate({ from: '/developer/charges' });
  const query = queryOf(filter);
  if (consumerId !== undefined) query.set('consumerId', consumerId);
  const list = usePages<Charges>({
    queryKey: ['charges', query.toString()],
    path: `/v1/charges?limit=50&${query}`,
    pollMs: whileOnePage(5_000),
  });
  const charges = list.data?.pages.flatMap((page) => page.charges) ?? [];
  // A charge opened from the dashboard or a shared link may not be on a loaded page.
  const one = useQuery({
    queryKey: ['charge', charge],
    queryFn: () => read<Charge>(`/v1/charges/${encodeURIComponent(charge ?? '')}`),
    enabled: charge !== undefined,
  });
  const kept = consumerId === undefined ? {} : { consumerId };
  const listed = charges.find(({ id }) => id === charge);
  const open = (id: string | undefined) =>
    void navigate({
      search: { ...filter, ...kept, ...(id === undefined ? {} : { charge: id }) },
      resetScroll: false,
    });
  return (
    <Page
      title="Charges"
      intro="Every charge for your tools, newest first."
      aside={
        <Button variant="default" component="a" href={`/v1/charges.csv?${query}`} download>
          Export CSV
        </Button>
      }
    >
      <ChargeFilters
        value={filter}
        onChange={(search) => void navigate({ search: { ...search, ...kept }, replace: true })}
      >
        <FindCharge onFind={open} />
        {consumerId !== undefined && (
          <Button variant="light" onClick={() => void navigate({ search: filter })}>
            One consumer only · Show all
          </Button>
        )}
      </ChargeFilters>
      {one.error && !listed && <Failed error={one.error} />}
      <Card title="Charges" flush>
        <PagedList
          list={list}
          isEmpty={charges.length === 0}
          empty={
            <Empty icon={<IconReceipt size={22} />} title="No charges">
              {query.size > 0
                ? 'No charge matches these filters.'
                : 'Charges for your tools appear here as they are made.'}
            </Empty>
          }
        >
          <ChargeTable charges={charges} onOpen={open} />
        </PagedList>
      </Card>
      <ChargeSheet
        charge={charge === undefined ? undefined : (one.data ?? listed)}
        onClose={() => open(undefined)}
        as="developer"
      >
        {one.error && <Failed error={one.error} />}
        {one.data && <Refund charge={one.data} />}
      </ChargeSheet>
    </Page>
  );
}

/** Refunds the amount in the field: at first all that is left of the charge. */
function Refund({ charge }: { readonly charge: Charge }) {
  const left = Math.round((charge.amount - charge.refunded) * 1e6) / 1e6;
  const [amount, setAmount] = useState(String(left));
  const queries = useQueryClient();
  const refund = useFormRequest({
    mutationFn: () =>
      writeOnce<ChargeRefund>(`/v1/charges/${charge.id}/refund`, { amount: amount.trim() }),
    onSuccess: (refunded) => {
      notifications.show({ message: `Refunded ${usd(refunded.amount)}.` });
      // Otherwise one more press of Enter would refund more.
      setAmount('');
      void queries.invalidateQueries();
    },
  });
  if (left <= 0) return null;
  const isEmpty = amount.trim() === '';
  return (
    <Field label="Refund">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!isEmpty && !refund.isPending) refund.mutate();
        }}
      >
        <Group gap="xs" align="flex-end" wrap="nowrap">
          <TextInput
            aria-label="Amount to refund in dollars"
            leftSection="$"
            inputMode="decimal"
            placeholder={`Up to ${left}`}
            value={amount}
            onChange={(event) => setAmount(event.currentTarget.value)}
          />
          <Button
            type="submit"
            variant="default"
            style={{ flexShrink: 0 }}
            disabled={isEmpty}
            loading={refund.isPending}
          >
            Refund
          </Button>
        </Group>
        {refund.error && <Failed error={refund.error} />}
      </form>
    </Field>
  );
}
