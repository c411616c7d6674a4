/** The rate card of a tool: its units with their prices, shown, and as rows of a form. */
import { ActionIcon, Button, Fieldset, Group, Stack, Table, Text, TextInput } from '@mantine/core';
import { IconPlus, IconX } from '@tabler/icons-react';
import { CARD_UNITS_MAX } from '../../../src/domain/rate-card.ts';
import type { OneTool } from '../answers.ts';
import { decimalText, unitPrice } from '../format.ts';
import { DollarsInput } from './dollars-input.tsx';
import { ScrollTable } from './lists.tsx';
import { Card } from './page.tsx';

/** Null: no card. */
type Prices = NonNullable<OneTool['card']> | null;

interface UnitRow {
  readonly key: string;
  readonly unit: string;
  readonly price: string;
}

const UNIT = /^[A-Za-z][\w.-]{0,39}$/;
const PRICE = /^(\d{1,4}(\.\d{1,12})?|\.\d{1,12})$/;
const PRICE_MAX = 1_000;

export function rowsOf(card: Prices): readonly UnitRow[] {
  return Object.entries(card ?? {}).map(([unit, price]) => ({
    key: unit,
    unit,
    price: decimalText(price),
  }));
}

/** Null: no card. Undefined while a row is wrong. Empty rows do not count. */
export function cardOf(all: readonly UnitRow[]): Prices | undefined {
  const rows = all.filter((row) => !isEmpty(row));
  const isValid = rows.every((row) => isNamed(row, rows) && isPriced(row));
  if (!isValid) return undefined;
  if (rows.length === 0) return null;
  return Object.fromEntries(rows.map(({ unit, price }) => [unit.trim(), Number(price)]));
}

function isEmpty({ unit, price }: UnitRow): boolean {
  return unit.trim() === '' && price.trim() === '';
}

function isNamed({ key, unit }: UnitRow, rows: readonly UnitRow[]): boolean {
  const isTaken = rows.some((row) => row.key !== key && row.unit.trim() === unit.trim());
  return UNIT.test(unit.trim()) && !isTaken;
}

function isPriced({ price }: UnitRow): boolean {
  return PRICE.test(price.trim()) && Number(price) <= PRICE_MAX;
}

interface FieldsProps {
  readonly rows: readonly UnitRow[];
  readonly onRows: (rows: readonly UnitRow[]) => void;
}

export function RateCardFields({ rows, onRows }: FieldsProps) {
  const change = (key: string, changes: Partial<UnitRow>) =>
    onRows(rows.map((row) => (row.key === key ? { ...row, ...changes } : row)));
  return (
    <Fieldset
      legend={
        <Text span size="sm" fw={600}>
          Rate card
        </Text>
      }
      variant="unstyled"
      m={0}
    >
      <Stack gap="xs">
        <Text size="xs" c="dimmed">
          Prices by the unit, such as tokens, with up to twelve decimals. Charges then state units.
        </Text>
        {rows.map((row, index) => (
          <Group key={row.key} gap="xs" align="flex-start" wrap="nowrap">
            <TextInput
              aria-label={`Name of unit ${index + 1}`}
              placeholder="input_tokens"
              maxLength={40}
              spellCheck={false}
              style={{ flex: 1 }}
              value={row.unit}
              error={
                isEmpty(row) || isNamed(row, rows)
                  ? undefined
                  : 'Enter a new name: a letter, then letters, digits and _.-'
              }
              onChange={(event) => change(row.key, { unit: event.currentTarget.value })}
            />
            <DollarsInput
              aria-label={`Price of unit ${index + 1} in dollars`}
              style={{ flex: 1 }}
              value={row.price}
              error={
                isEmpty(row) || isPriced(row)
                  ? undefined
                  : 'Enter up to 1,000, with up to twelve decimals.'
              }
              onValue={(price) => change(row.key, { price })}
            />
            <ActionIcon
              variant="subtle"
              color="gray"
              size="input-sm"
              aria-label={`Remove unit ${index + 1}`}
              onClick={() => onRows(rows.filter(({ key }) => key !== row.key))}
            >
              <IconX size={16} />
            </ActionIcon>
          </Group>
        ))}
        {rows.length < CARD_UNITS_MAX && (
          <Group>
            <Button
              size="xs"
              variant="default"
              leftSection={<IconPlus size={14} />}
              onClick={() => onRows([...rows, { key: crypto.randomUUID(), unit: '', price: '' }])}
            >
              Add unit
            </Button>
          </Group>
        )}
      </Stack>
    </Fieldset>
  );
}

/** Nothing if the tool has none. */
export function RateCard({ tool: { card, cardVersion } }: { readonly tool: OneTool }) {
  if (!card) return null;
  return (
    <Card title="Rate card" aside={<Text c="dimmed">Version {cardVersion}</Text>} flush>
      <ScrollTable
        label="Rate card"
        minWidth={240}
        head={
          <>
            <Table.Th>Unit</Table.Th>
            <Table.Th className="money">Price</Table.Th>
          </>
        }
      >
        {Object.entries(card).map(([unit, price]) => (
          <Table.Tr key={unit}>
            <Table.Td className="breaks">{unit}</Table.Td>
            <Table.Td className="money">{unitPrice(price)}</Table.Td>
          </Table.Tr>
        ))}
      </ScrollTable>
    </Card>
  );
}
