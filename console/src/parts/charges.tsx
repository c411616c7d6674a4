/** Lists of charges: their filters, the table, and a drawer with the details of one. */
import {
  Alert,
  Button,
  Code,
  Drawer,
  Group,
  Stack,
  Table,
  Text,
  TextInput,
  type TextInputProps,
  UnstyledButton,
  VisuallyHidden,
} from '@mantine/core';
import { IconRosetteDiscountCheck } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { useEffect, useState, type ReactNode } from 'react';
import { uuidOf } from '../../../src/domain/ids.ts';
import type { Usage, Verified } from '../answers.ts';
import { write } from '../api.ts';
import { decimalsOfAll } from '../format.ts';
import { FormDialog } from './form-dialog.tsx';
import { ScrollTable } from './lists.tsx';
import { CopyText, Id, Money, RefundableAmount, Time } from './values.tsx';

export type Charge = Usage['charges'][number] & { readonly consumerId?: string };

export interface ChargeFilter {
  readonly tool?: string;
  readonly from?: string;
  readonly to?: string;
}

/**
 * The query string for the API. Days begin and end in the browser's time zone. Invalid dates are sent
 * unchanged, and the API refuses them.
 */
export function queryOf({ tool, from, to }: ChargeFilter): URLSearchParams {
  const query = new URLSearchParams();
  if (tool !== undefined) query.set('tool', tool);
  if (from !== undefined) query.set('from', startOf(from) ?? from);
  if (to !== undefined) query.set('to', startOf(to, 1) ?? to);
  return query;
}

/** When the day begins, or the one so many days later. */
function startOf(day: string, later = 0): string | undefined {
  const start = new Date(`${day}T00:00:00`);
  start.setDate(start.getDate() + later);
  return Number.isNaN(start.getTime()) ? undefined : start.toISOString();
}

interface DayProps extends Pick<TextInputProps, 'label' | 'min' | 'max'> {
  readonly value: string;
  readonly onDay: (day: string) => void;
}

/** While a year is typed, the field has the years 2, 20 and 202: they must neither be asked for nor undo the typing. */
function DayInput({ value, onDay, ...limits }: DayProps) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  return (
    <TextInput
      {...limits}
      type="date"
      value={typed}
      onChange={(event) => {
        const day = event.currentTarget.value;
        setTyped(day);
        if (day === '' || day >= '1000') onDay(day);
      }}
    />
  );
}

interface FilterProps {
  readonly value: ChargeFilter;
  readonly onChange: (filter: ChargeFilter) => void;
  readonly children?: ReactNode;
}

export function ChargeFilters({ value, onChange, children }: FilterProps) {
  const [tool, setTool] = useState(value.tool ?? '');
  useEffect(() => setTool(value.tool ?? ''), [value.tool]);
  const change = (changes: { [Name in keyof ChargeFilter]: string }) => {
    const all = { ...value, ...changes };
    onChange(Object.fromEntries(Object.entries(all).filter(([, text]) => text !== '')));
  };
  const isFiltered = value.tool !== undefined || value.from !== undefined || value.to !== undefined;
  return (
    <Group gap="sm" align="flex-end">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          change({ tool });
        }}
      >
        <TextInput
          label="Tool"
          placeholder="All tools"
          maxLength={100}
          value={tool}
          onChange={(event) => setTool(event.currentTarget.value)}
          onBlur={() => tool !== (value.tool ?? '') && change({ tool })}
        />
      </form>
      <DayInput
        label="From"
        max={value.to}
        value={value.from ?? ''}
        onDay={(from) => change({ from })}
      />
      <DayInput label="To" min={value.from} value={value.to ?? ''} onDay={(to) => change({ to })} />
      {isFiltered && (
        <Button variant="subtle" onClick={() => onChange({})}>
          Clear
        </Button>
      )}
      {children}
    </Group>
  );
}

/** Opens the charge that somebody else quotes. */
export function FindCharge({ onFind }: { readonly onFind: (id: string) => void }) {
  const [typed, setTyped] = useState('');
  const [isRefused, setRefused] = useState(false);
  const id = typed.trim();
  const isId = uuidOf('charge', id) !== undefined;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        setRefused(!isId);
        if (isId) onFind(id);
      }}
    >
      <TextInput
        label="Charge ID"
        placeholder="chg_…"
        maxLength={100}
        error={isRefused && !isId && 'Enter the whole ID: chg_ and 32 characters.'}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
    </form>
  );
}

interface TableProps {
  readonly charges: readonly Charge[];
  readonly onOpen: (id: string) => void;
}

export function ChargeTable({ charges, onOpen }: TableProps) {
  const decimals = decimalsOfAll(charges.map(({ amount }) => amount));
  return (
    <ScrollTable
      label="Charges"
      minWidth={300}
      highlightOnHover
      head={
        <>
          <Table.Th>Time</Table.Th>
          <Table.Th>Tool</Table.Th>
          <Table.Th className="money">Amount</Table.Th>
        </>
      }
    >
      {charges.map(({ id, tool, amount, refunded, createdAt }) => (
        <Table.Tr key={id} className="row-button" onClick={() => onOpen(id)}>
          <Table.Td>
            <UnstyledButton fz="sm" onClick={() => onOpen(id)}>
              <VisuallyHidden>Charge for {tool}, </VisuallyHidden>
              <Time iso={createdAt} />
            </UnstyledButton>
          </Table.Td>
          <Table.Td>
            <bdi className="one-line" title={tool}>
              {tool}
            </bdi>
          </Table.Td>
          <Table.Td className="money">
            <RefundableAmount amount={amount} refunded={refunded} decimals={decimals} />
          </Table.Td>
        </Table.Tr>
      ))}
    </ScrollTable>
  );
}

interface SheetProps {
  readonly charge: Charge | undefined;
  readonly onClose: () => void;
  readonly as: 'consumer' | 'developer';
  readonly children?: ReactNode;
}

/** The details of one charge, with its receipt, which can be verified. */
export function ChargeSheet({ charge, onClose, as, children }: SheetProps) {
  return (
    <FormDialog frame={Drawer} opened={charge !== undefined} onClose={onClose} title="Charge">
      {charge && (
        <Stack gap="md" key={charge.id}>
          <div>
            <Text fz={28} fw={650} lh={1.2}>
              <Money dollars={charge.amount} />
            </Text>
            {charge.refunded > 0 && (
              <Text c="dimmed" size="sm">
                <Money dollars={charge.refunded} /> refunded
              </Text>
            )}
          </div>
          <Field label="Tool">
            <bdi className="breaks">{charge.tool}</bdi>
          </Field>
          {charge.cardVersion !== undefined && (
            <Field label="Rate card">Version {charge.cardVersion}</Field>
          )}
          <Field label="Time">
            <Time iso={charge.createdAt} />
          </Field>
          <Field label="Charge">
            <Id id={charge.id} />
          </Field>
          <Field label={as === 'consumer' ? 'Developer' : 'Consumer'}>
            <Id id={as === 'consumer' ? charge.developerId : (charge.consumerId ?? '')} />
          </Field>
          <Receipt receipt={charge.receipt} />
          {children}
        </Stack>
      )}
    </FormDialog>
  );
}

export function Field({
  label,
  children,
}: {
  readonly label: string;
  readonly children: ReactNode;
}) {
  return (
    <div>
      <Text size="sm" c="dimmed">
        {label}
      </Text>
      <div>{children}</div>
    </div>
  );
}

function Receipt({ receipt }: { readonly receipt: string }) {
  const verify = useMutation({
    mutationFn: () => write<Verified>('/v1/receipts/verify', { receipt }),
  });
  return (
    <Field label="Receipt">
      <Code block className="breaks" style={{ whiteSpace: 'pre-wrap' }}>
        {receipt}
      </Code>
      <Group mt="xs" gap="xs">
        <CopyText value={receipt} label="Copy receipt" />
        <Button
          size="xs"
          variant="default"
          leftSection={<IconRosetteDiscountCheck size={14} />}
          loading={verify.isPending}
          onClick={() => verify.mutate()}
        >
          Verify
        </Button>
      </Group>
      <div role="status">
        {verify.data && (
          <Alert mt="xs" color={verify.data.valid ? 'green' : 'red'} p="xs">
            {verify.data.valid
              ? 'The signature is valid: Farebox issued this receipt.'
              : 'The signature is not valid.'}
          </Alert>
        )}
        {verify.error && (
          <Alert mt="xs" color="red" p="xs">
            {verify.error.message}
          </Alert>
        )}
      </div>
    </Field>
  );
}
