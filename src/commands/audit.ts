/** `farebox audit`: lists the audit log, newest entry first. `farebox doctor` verifies it. */
import { InvalidArgumentError, type Command } from 'commander';
import { subjectOf, wireDetails } from '../domain/audit-entry.ts';
import { wireId } from '../domain/ids.ts';
import { listAuditEntries, type AuditEntry } from '../store/audit/audit-log.ts';
import { dataDirOption } from './data-dir-option.ts';
import { getAccount, withDatabase } from './database-command.ts';
import { columns, jsonLines } from './output.ts';
import { limitOf, LIMIT_MAX } from './limit.ts';

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
  const entries = await withDatabase(dataDir, async (database) => {
    const accountId = account === undefined ? undefined : (await getAccount(database, account)).id;
    const found: AuditEntry[] = [];
    do {
      const last = found.at(-1)?.number ?? after;
      const left = limit - found.length;
      found.push(...(await listAuditEntries(database, { limit: left, accountId, after: last })));
    } while (found.at(-1)?.hasNext === true);
    return found;
  });
  const listed = entries.map(shown);
  process.stdout.write(json ? jsonLines(listed) : columns(listed.map(brief)));
}

function shown(entry: AuditEntry) {
  return {
    number: entry.number,
    happenedAt: entry.happenedAt,
    action: entry.action,
    accountId: entry.accountId && wireId('account', entry.accountId),
    subjectId: subjectOf(entry.action, entry.subjectId),
    details: wireDetails(entry.details),
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

function numberOf(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be the number of an entry.');
}
