/** The audit log: owners read the entries of their account, operators those of all. */
import { subjectOf, wireDetails } from '../../../domain/audit-entry.ts';
import { uuidOf, wireId } from '../../../domain/ids.ts';
import type {
  AuditLogReply,
  OperatorAuditLogQuery,
  OperatorAuditLogReply,
} from '../../../schemas/audit-log.ts';
import { LIMIT_DEFAULT, type PageQuery } from '../../../schemas/shapes.ts';
import { listAuditEntries, type AuditEntry } from '../../../store/audit/audit-log.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { invalidCursor } from '../../pagination.ts';
import type { Api } from '../../services.ts';

export async function getAuditLog(
  api: Api,
  { caller, query }: Request<undefined, PageQuery>,
): Promise<Reply<AuditLogReply>> {
  const { rows, ...marks } = await readPage(api, query, caller.accountId);
  const entries = rows.map((row) => {
    // Who among the operators did it is not for the owner.
    const { operatorAccountId: _, ...details } = wireDetails(row.details);
    return { ...commonOf(row), details };
  });
  return { status: 200, body: { entries, ...marks } };
}

export async function getOperatorAuditLog(
  api: Api,
  { query }: Request<undefined, OperatorAuditLogQuery>,
): Promise<Reply<OperatorAuditLogReply>> {
  const accountId = query.accountId === undefined ? undefined : uuidOf('account', query.accountId);
  const { rows, ...marks } = await readPage(api, query, accountId);
  const entries = rows.map((row) => ({
    ...commonOf(row),
    accountId: row.accountId && wireId('account', row.accountId),
    details: wireDetails(row.details),
    databaseRole: row.databaseRole,
    hash: row.hash,
  }));
  return { status: 200, body: { entries, ...marks } };
}

function commonOf({ number, happenedAt, action, subjectId, program }: AuditEntry) {
  return { number, happenedAt, action, subjectId: subjectOf(action, subjectId), program };
}

/** A cursor is the number of the last entry of the previous page. Reads one entry beyond the page. */
async function readPage(
  { database }: Api,
  { limit = LIMIT_DEFAULT, cursor }: PageQuery,
  accountId: string | undefined,
) {
  if (cursor !== undefined && !/^[1-9]\d{0,14}$/.test(cursor)) {
    throw invalidCursor();
  }
  const found = await listAuditEntries(database, {
    limit: limit + 1,
    accountId,
    after: cursor === undefined ? undefined : Number(cursor),
  });
  const rows = found.slice(0, limit);
  const hasMore = found.length > limit || rows.at(-1)?.hasNext === true;
  return { rows, hasMore, nextCursor: hasMore ? String(rows.at(-1)?.number) : null };
}
