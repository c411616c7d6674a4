/** Entries of the audit log as people and programs read them: ids and amounts in the same form as everywhere else. */
import { wireId, type IdKind } from './ids.ts';
import { asMicros, dollarsOf } from './money.ts';

/** What the subjects of actions are. The others have plain UUIDs: sessions, credentials, adjustments. */
const SUBJECTS: Readonly<Record<string, IdKind>> = {
  'account.created': 'account',
  'consent.changed': 'account',
  'card.chosen': 'account',
  'key.created': 'key',
  'key.expiry_set': 'key',
  'key.revoked': 'key',
  'spend_key.created': 'key',
  'spend_key.expiry_set': 'key',
  'spend_key.revoked': 'key',
  'balance.opened': 'topUp',
  'refund.requested': 'topUpRefund',
};

/** Columns of details that are ids. */
const IDS: Readonly<Record<string, IdKind>> = {
  top_up_id: 'topUp',
  operator_account_id: 'account',
};

export function subjectOf(action: string, subjectId: string | null): string | null {
  const kind = SUBJECTS[action];
  return subjectId && kind ? wireId(kind, subjectId) : subjectId;
}

/** `amount_micros: 5000000` becomes `amount: 5`, and `top_up_id` an id as everywhere else. */
export function wireDetails(details: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(details).map(([column, value]) => {
      if (column === 'before') return [column, wireDetails(value as Record<string, unknown>)];
      const kind = IDS[column];
      if (kind && typeof value === 'string') return [camelCase(column), wireId(kind, value)];
      const isMicros = column.endsWith('_micros') && typeof value === 'number';
      return [
        camelCase(column.replace(/_micros$/, '')),
        isMicros ? dollarsOf(asMicros(value)) : value,
      ];
    }),
  );
}

function camelCase(column: string): string {
  return column.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
