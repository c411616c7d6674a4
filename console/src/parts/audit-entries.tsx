/** Entries of the audit log, in words. */
import { Anchor, Table, Text } from '@mantine/core';
import { IconHistory } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { AuditLog, Budgets, OperatorAuditLog, WebhookEndpoints } from '../answers.ts';
import { read } from '../api.ts';
import { localTime, usd } from '../format.ts';
import { keysRead } from '../page-reads.ts';
import { PagedList, ScrollTable, usePages } from './lists.tsx';
import { Empty } from './states.tsx';
import { Time } from './values.tsx';

type Entry = AuditLog['entries'][number] & Partial<OperatorAuditLog['entries'][number]>;

export function AuditEntries({ path }: { readonly path: string }) {
  const list = usePages<AuditLog>({ queryKey: ['audit-log', path], path });
  const entries: readonly Entry[] = list.data?.pages.flatMap((page) => page.entries) ?? [];
  const names = useNames(entries);
  return (
    <PagedList
      list={list}
      isEmpty={entries.length === 0}
      empty={
        <Empty icon={<IconHistory size={22} />} title="No entries">
          No changes to access and no adjustments yet.
        </Empty>
      }
    >
      <ScrollTable
        label="Audit log"
        minWidth={280}
        head={
          <>
            <Table.Th>Time</Table.Th>
            <Table.Th>What</Table.Th>
            <Table.Th visibleFrom="xs">By</Table.Th>
          </>
        }
      >
        {entries.map((entry) => (
          <Table.Tr key={entry.number} style={{ verticalAlign: 'top' }}>
            <Table.Td>
              <Time iso={entry.happenedAt} />
            </Table.Td>
            <Table.Td>
              {ACTIONS[entry.action] ?? entry.action}
              <Details entry={entry} />
              <Subject entry={entry} name={names.get(entry.subjectId ?? '')} />
              <Text size="xs" c="dimmed" hiddenFrom="xs" className="breaks">
                By: {programOf(entry)}
              </Text>
            </Table.Td>
            <Table.Td visibleFrom="xs" className="breaks">
              {programOf(entry)}
              {entry.databaseRole !== undefined && (
                <Text size="xs" c="dimmed">
                  Entry {entry.number}, role {entry.databaseRole}
                </Text>
              )}
            </Table.Td>
          </Table.Tr>
        ))}
      </ScrollTable>
    </PagedList>
  );
}

function Details({ entry }: { readonly entry: Entry }) {
  const { before, by: _, ...details } = entry.details;
  const earlier = (before ?? {}) as Readonly<Record<string, unknown>>;
  const words = Object.entries(details)
    // Budgets have numbers only inside the database.
    .filter(([name, value]) => name !== 'budget' && (value !== null || name in earlier))
    .map(([name, value]) => {
      const shown = `${nameOf(name)}: ${textOf(name, value)}`;
      return name in earlier ? `${shown} (was ${textOf(name, earlier[name])})` : shown;
    });
  return (
    <Text size="xs" c="dimmed" className="breaks">
      {words.join(', ')}
      {entry.accountId != null && (
        <>
          {words.length > 0 && ', '}
          <Anchor
            inherit
            underline="always"
            renderRoot={(props) => (
              <Link
                to="/operator/accounts/$accountId"
                params={{ accountId: entry.accountId as string }}
                {...props}
              />
            )}
          >
            {entry.accountId}
          </Anchor>
        </>
      )}
    </Text>
  );
}

/** Whether the reader owns the account: only operators are told which account an entry is about. */
const isOwn = ({ accountId }: Entry) => accountId === undefined;

/** What the owner of the account calls the subjects of the entries, as far as they are still there. */
function useNames(entries: readonly Entry[]): ReadonlyMap<string, string> {
  const has = (prefix: string) =>
    entries.some((entry) => isOwn(entry) && entry.subjectId?.startsWith(prefix));
  const budgets = useQuery({
    queryKey: ['budgets', 'names'],
    queryFn: () => read<Budgets>('/v1/budgets?limit=100'),
    enabled: has('bdg_'),
  });
  const keys = useQuery({ ...keysRead, enabled: has('key_') });
  const endpoints = useQuery({
    queryKey: ['webhook-endpoints'],
    queryFn: () => read<WebhookEndpoints>('/v1/webhook-endpoints'),
    enabled: has('we_'),
  });
  return new Map([
    ...(budgets.data?.budgets ?? []).map(({ id, name }) => [id, name] as const),
    ...(keys.data?.keys ?? []).map(({ id, name }) => [id, name ?? 'Unnamed key'] as const),
    ...(endpoints.data?.webhookEndpoints ?? []).map(({ id, url }) => [id, url] as const),
  ]);
}

/** The subjects that people know by their ids: not sessions and persons, which have plain UUIDs, nor the account itself. */
const NAMED = /^(?!acct_)[a-z]+_[0-9a-f]{32}$/;

/** What was changed. */
function Subject({ entry, name }: { readonly entry: Entry; readonly name: string | undefined }) {
  const { subjectId } = entry;
  if (subjectId === null || !NAMED.test(subjectId)) return null;
  return (
    <Text size="xs" c="dimmed" className="breaks">
      {name !== undefined && (
        <>
          <bdi>{name}</bdi>,{' '}
        </>
      )}
      {isOwn(entry) && subjectId.startsWith('bdg_') ? (
        <Anchor
          inherit
          underline="always"
          renderRoot={(props) => <Link to="/budgets" search={{ budget: subjectId }} {...props} />}
        >
          {subjectId}
        </Anchor>
      ) : (
        subjectId
      )}
    </Text>
  );
}

/** The members that the console's forms call something else. */
const NAMES: Readonly<Record<string, string>> = {
  ceiling: 'monthly limit',
  consentCeiling: 'monthly limit',
  maxPerCall: 'limit for one call',
};

/** `lastFour` becomes `last four`. */
function nameOf(name: string): string {
  return NAMES[name] ?? name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

const AMOUNTS = new Set([
  'amount',
  'threshold',
  'ceiling',
  'consentCeiling',
  'dailyLimit',
  'limit',
  'windowLimit',
  'maxPerCall',
  'maxLease',
  'raisedTo',
]);

function textOf(name: string, value: unknown): string {
  if (value === null) return 'none';
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  if (typeof value === 'number' && AMOUNTS.has(name)) return usd(value);
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d/.test(value)) return localTime(value);
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.join(' and ');
  if (typeof value === 'object') return longListText(value as LongList);
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** What an entry has of a long list. */
interface LongList {
  readonly count: number;
  readonly added?: readonly string[];
  readonly addedCount?: number;
  readonly removed?: readonly string[];
  readonly removedCount?: number;
}

function longListText(list: LongList): string {
  const { count, added, addedCount = 0, removed, removedCount = 0 } = list;
  const parts = [
    added && `added ${someOf(added, addedCount)}`,
    removed && `removed ${someOf(removed, removedCount)}`,
  ];
  return [`${count} in all`, ...parts].filter((part) => part !== undefined).join(', ');
}

function someOf(members: readonly string[], count: number): string {
  const left = count - members.length;
  return [...members, ...(left > 0 ? [`${left} more`] : [])].join(' and ');
}

/** The program, and who used it where the entry says so. */
function programOf({ program, details: { by } }: Entry): string {
  const { kind, id = '' } = (by ?? {}) as Partial<Record<'kind' | 'id', string>>;
  if (kind === 'key') return `API, by ${id}`;
  if (kind === 'session') return 'Console';
  if (kind === 'link') return 'The link in an email';
  return PROGRAMS[program] ?? (program || 'Unnamed program');
}

const PROGRAMS: Readonly<Record<string, string>> = {
  'farebox api': 'Console or API',
  'farebox worker': 'Farebox',
};

const ACTIONS: Readonly<Record<string, string>> = {
  'account.created': 'Account created',
  'account.claimed': 'Account claimed by its owner',
  'account_keys.changed': 'Limits of the account’s keys changed',
  'approval.decided': 'Approval decided',
  'auto_top_up.set': 'Automatic top-up set',
  'auto_top_up.removed': 'Automatic top-up turned off',
  'balance.adjusted': 'Balance adjusted',
  'balance.opened': 'Account opened with a balance',
  'budget.created': 'Budget created',
  'budget.changed': 'Budget changed',
  'budget.closed': 'Budget closed',
  'budget.reopened': 'Budget reopened',
  'card.chosen': 'Card for top-ups chosen',
  'consent.changed': 'Monthly limit of card payments changed',
  'key.created': 'Key created',
  'key.expiry_set': 'Key set to expire',
  'key.revoked': 'Key revoked',
  'operator.acted': 'Changed by an operator',
  'operator.changed': 'Operator rights changed',
  'passkey.added': 'Passkey added',
  'passkey.removed': 'Passkey removed',
  'password.set': 'Password set',
  'refund.requested': 'Refund of a top-up requested',
  'session.started': 'Signed in',
  'session.ended': 'Session ended',
  'sign_in_link.created': 'Sign-in link created',
  'spend_key.created': 'Spend key created',
  'spend_key.expiry_set': 'Spend key set to expire',
  'spend_key.revoked': 'Spend key revoked',
  'two_factor.changed': 'Two-factor authentication changed',
  'difference.settled': 'Difference from Stripe settled',
  'warning.dismissed': 'Fraud warning dismissed',
  'webhook_endpoint.created': 'Webhook endpoint created',
  'webhook_endpoint.deleted': 'Webhook endpoint deleted',
  'webhook_endpoint.secret_rolled': 'Webhook secret rolled',
  'webhook_endpoint.url_changed': 'URL of a webhook endpoint changed',
};
