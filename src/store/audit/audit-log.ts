/** The audit log. Triggers write it (migrations/0018_audit_log.sql), in the transaction of each change. */
import { Type, type Static } from 'typebox';
import { nullable, row, sql, type Connection } from '../database.ts';
import { lightPage } from '../page.ts';

const AuditEntry = Type.Object({
  /** 1, 2, 3, ... */
  number: Type.Integer(),
  happenedAt: Type.String(),
  /** Such as `key.revoked`. */
  action: Type.String(),
  /** UUIDs. */
  accountId: nullable(Type.String()),
  subjectId: nullable(Type.String()),
  /** By column; `before` has the earlier values of those that changed. Amounts are in micro-dollars. */
  details: Type.Record(Type.String(), Type.Unknown()),
  /** Such as `farebox api` and `farebox key revoke`; empty when the connection does not say. */
  program: Type.String(),
  databaseRole: Type.String(),
  /** In hex. */
  hash: Type.String(),
  /** Whether another entry follows that was left out, since those of the page are large. */
  hasNext: Type.Boolean(),
});

export type AuditEntry = Static<typeof AuditEntry>;

const entryRow = row(AuditEntry);

export interface AuditPage {
  readonly limit: number;
  /** The UUID of an account; all when absent. */
  readonly accountId?: string | undefined;
  /** The number of the last entry of the page before. */
  readonly after?: number | undefined;
}

/** Newest first; fewer than `limit` where they are large. */
export function listAuditEntries(
  connection: Connection,
  { limit, accountId, after }: AuditPage,
): Promise<readonly AuditEntry[]> {
  const entries = sql.fragment`
    select * from farebox.audit_entries
    where ${sql.and([
      accountId !== undefined && sql.fragment`account_id = ${accountId}`,
      after !== undefined && sql.fragment`number < ${after}`,
    ])}
    order by number desc limit ${limit}
  `;
  const bytes = sql.fragment`300 + octet_length(details::text)`;
  return connection.any(sql.type(entryRow)`
    select number, happened_at as "happenedAt", action, account_id as "accountId", subject_id as "subjectId",
      details, program, database_role as "databaseRole", encode(hash, 'hex') as hash, has_next as "hasNext"
    from (${lightPage(entries, sql.fragment`number desc`, bytes)}) entries order by number desc
  `);
}
