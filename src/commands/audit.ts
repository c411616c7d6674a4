/** `farebox audit`: lists the audit log, newest entry first. `farebox doctor` verifies it. */
import { InvalidArgumentError, type Command } from 'commander';
import { wireId, type IdKind } from '../domain/ids.ts';
import { asMicros, dollarsOf } from '../domain/money.ts';
import { listAuditEntries, type AuditEntry } from '../store/audit/audit-log.ts';
import { columns } from './columns.ts';
import { dataDirOption } from './data-dir-option.ts';
import { getAccount, withDatabase } from './database-command.ts';

const LIMIT_MAX = 1_000;

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

interface AuditOptions {
  readonly account?: string;
  readonly limit: number;
  readonly after?: number;
  readonly json: boolean;
  readonly dataDir: string;
}

export function register(command: Command): void {
  command
    .option('--account <account>', 'only this account (email, acct_…, cns_… or dev_…)')
    .option('--limit <n>', `at most this many, up to ${LIMIT_MAX}`, limitOf, 50)
    .option('--after <number>', 'continue after this entry', numberOf)
    .option('--json', 'print one JSON object per line', false)
    .addOption(dataDirOption())
    .action(audit);
}

async function audit({ account, limit, after, json, dataDir }: AuditOptions): Promise<void> {
  const entries = await withDatabase(dataDir, async (database) =>
    listAuditEntries(database, {
      limit,
      ...(account === undefined ? {} : { accountId: (await getAccount(database, account)).id }),
      ...(after === undefined ? {} : { after }),
    }),
  );
  const listed = entries.map(shown);
  process.stdout.write(
    json
      ? listed.map((entry) => `${JSON.stringify(entry)}\n`).join('')
      : columns(listed.map(brief)),
  );
}

function shown(entry: AuditEntry) {
  const { subjectId } = entry;
  const kind = SUBJECTS[entry.action];
  return {
    number: entry.number,
    happenedAt: entry.happenedAt,
    action: entry.action,
    accountId: entry.accountId && wireId('account', entry.accountId),
    subjectId: subjectId && kind ? wireId(kind, subjectId) : subjectId,
    details: inWireForm(entry.details),
    program: entry.program,
    databaseRole: entry.databaseRole,
    hash: entry.hash,
  };
}

/** A table has no room for the hash. */
function brief(entry: ReturnType<typeof shown>) {
  return {
    number: entry.number,
    happenedAt: entry.happenedAt,
    action: entry.action,
    accountId: entry.accountId,
    subjectId: entry.subjectId,
    program: entry.program,
    databaseRole: entry.databaseRole,
    details: JSON.stringify(entry.details),
  };
}

/** `amount_micros: 5000000` becomes `amount: 5`, and `top_up_id` an id as everywhere else. */
function inWireForm(details: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(details).map(([column, value]) => {
      if (column === 'before') return [column, inWireForm(value as Record<string, unknown>)];
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

function limitOf(text: string): number {
  const limit = Number(text);
  if (/^\d+$/.test(text) && limit >= 1 && limit <= LIMIT_MAX) return limit;
  throw new InvalidArgumentError(`It must be a number from 1 to ${LIMIT_MAX}.`);
}

function numberOf(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be the number of an entry.');
}
