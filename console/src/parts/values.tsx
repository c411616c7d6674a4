/** Single values: money, times, ids, statuses, and text to copy. */
import { ActionIcon, Badge, Button, CopyButton, Group, Text, Tooltip } from '@mantine/core';
import { IconCheck, IconCopy } from '@tabler/icons-react';
import { ago, localTime, statusText, usd } from '../format.ts';
import { useNow } from '../now.ts';

export function Money({
  dollars,
  decimals,
}: {
  readonly dollars: number;
  readonly decimals?: number;
}) {
  return <span className="money">{usd(dollars, decimals)}</span>;
}

/** Local time, or how long ago it was; UTC on hover. */
export function Time({
  iso,
  relative = false,
}: {
  readonly iso: string;
  readonly relative?: boolean;
}) {
  const utc = `${iso.slice(0, 19).replace('T', ' ')} UTC`;
  return (
    <time dateTime={iso} title={relative ? `${localTime(iso)} (${utc})` : utc} className="time">
      {relative ? <Ago iso={iso} /> : localTime(iso)}
    </time>
  );
}

function Ago({ iso }: { readonly iso: string }) {
  return ago(iso, useNow());
}

const COLORS: Readonly<Record<string, string>> = {
  completed: 'green',
  pending: 'blue',
  failed: 'red',
  disputed: 'orange',
  charged_back: 'red',
};

export function Status({ status }: { readonly status: string }) {
  return (
    <Badge variant="dot" color={COLORS[status] ?? 'gray'} tt="none" fw={500}>
      {statusText[status] ?? status}
    </Badge>
  );
}

export function CopyIcon({ value, label }: { readonly value: string; readonly label: string }) {
  return (
    <CopyButton value={value} timeout={2_000}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? 'Copied' : label}>
          <ActionIcon
            variant="subtle"
            color="gray"
            onClick={copy}
            aria-label={copied ? 'Copied' : label}
          >
            {copied ? <IconCheck size={16} /> : <IconCopy size={16} />}
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  );
}

export function CopyText({ value, label }: { readonly value: string; readonly label: string }) {
  return (
    <CopyButton value={value} timeout={2_000}>
      {({ copied, copy }) => (
        <Button
          variant="default"
          size="xs"
          onClick={copy}
          leftSection={copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
        >
          {copied ? 'Copied' : label}
        </Button>
      )}
    </CopyButton>
  );
}

export function Id({ id }: { readonly id: string }) {
  return (
    <Group gap={4} wrap="nowrap" style={{ minWidth: 0 }}>
      <span className="id breaks">{id}</span>
      <CopyIcon value={id} label="Copy ID" />
    </Group>
  );
}

interface RefundableAmountProps {
  readonly amount: number;
  readonly refunded: number;
  readonly decimals: number;
}

/** The amount of a charge or top-up and, below it, the refunded part, if any. */
export function RefundableAmount({ amount, refunded, decimals }: RefundableAmountProps) {
  return (
    <>
      <Money dollars={amount} decimals={decimals} />
      {refunded > 0 && (
        <Text size="xs" c="dimmed">
          <Money dollars={refunded} /> refunded
        </Text>
      )}
    </>
  );
}
