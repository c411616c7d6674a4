/** Entries of the audit log as people and programs read them: ids and amounts in the same form as everywhere else. */
import { windowUnitOf } from './budget.ts';
import { wireId, type IdKind } from './ids.ts';
import { asMicros, dollarsOf } from './money.ts';

/** What the subjects of actions are. The others have plain UUIDs: sessions, users and how they sign in. */
const SUBJECTS: Readonly<Record<string, IdKind>> = {
  'account.created': 'account',
  'account_keys.changed': 'account',
  'approval.decided': 'approval',
  'balance.adjusted': 'movement',
  'balance.opened': 'topUp',
  'card.chosen': 'account',
  'consent.changed': 'account',
  'key.created': 'key',
  'key.expiry_set': 'key',
  'key.revoked': 'key',
  'operator.changed': 'account',
  'refund.requested': 'topUpRefund',
  'spend_key.created': 'key',
  'spend_key.expiry_set': 'key',
  'spend_key.revoked': 'key',
  'warning.dismissed': 'fraudWarning',
  'webhook_endpoint.created': 'webhookEndpoint',
  'webhook_endpoint.deleted': 'webhookEndpoint',
  'webhook_endpoint.secret_rolled': 'webhookEndpoint',
  'webhook_endpoint.url_changed': 'webhookEndpoint',
  'budget.created': 'budget',
  'budget.changed': 'budget',
  'budget.closed': 'budget',
  'budget.reopened': 'budget',
};

/** Columns of details that are ids, or lists of ids. */
const IDS: Readonly<Record<string, IdKind>> = {
  top_up_id: 'topUp',
  operator_account_id: 'account',
  parent_id: 'budget',
  developers: 'developer',
  approved_developers: 'developer',
};

/** What the ids of `by` are. Sessions have plain UUIDs. */
const ACTORS: Readonly<Record<string, IdKind>> = { key: 'key', link: 'approval' };

export function subjectOf(action: string, subjectId: string | null): string | null {
  const kind = SUBJECTS[action];
  return subjectId && kind ? wireId(kind, subjectId) : subjectId;
}

/** `amount_micros: 5000000` becomes `amount: 5`, and `top_up_id` an id as everywhere else. */
export function wireDetails(details: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(details).map(([column, value]) => [
      camelCase(column.replace(/_micros$/, '')),
      wireValue(column, value),
    ]),
  );
}

function wireValue(column: string, value: unknown): unknown {
  if (column === 'before') return wireDetails(value as Record<string, unknown>);
  if (column === 'by') {
    const { kind, id } = value as Record<'kind' | 'id', string>;
    return { kind, id: ACTORS[kind] ? wireId(ACTORS[kind], id) : id };
  }
  if (column === 'window_unit') return windowUnitOf(Number(value));
  const kind = IDS[column];
  if (kind && typeof value === 'string') return wireId(kind, value);
  if (kind && Array.isArray(value)) return value.map((id) => wireId(kind, String(id)));
  // The summary of a long list (migrations/functions/audit_list.sql).
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [
        camelCase(name),
        kind && Array.isArray(member) ? member.map((id) => wireId(kind, String(id))) : member,
      ]),
    );
  }
  const isMicros = column.endsWith('_micros') && typeof value === 'number';
  return isMicros ? dollarsOf(asMicros(value)) : value;
}

function camelCase(column: string): string {
  return column.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
