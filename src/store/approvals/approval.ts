/** Approvals as they are read, and who sees which. */
import { Type, type Static } from 'typebox';
import {
  APPROVAL_SCOPES,
  APPROVAL_STATUSES,
  ASKABLE_CODES,
  ASKERS,
  DECISIONS,
  type ApprovalStatus,
} from '../../domain/approval.ts';
import type { TreeView } from '../budgets/budgets.ts';
import { micros, nullable, row, sql, type Connection, type Fragment } from '../database.ts';
import { isBefore, type Page } from '../page.ts';

const Approval = Type.Object({
  id: Type.String(),
  accountId: Type.String(),
  ledger: Type.Integer(),
  consumerId: Type.String(),
  spendKey: Type.Integer(),
  /** Null: a key of the account was to pay. */
  keyId: nullable(Type.String()),
  keyName: nullable(Type.String()),
  developerId: Type.String(),
  tool: Type.String(),
  amountMicros: micros,
  code: Type.Enum(ASKABLE_CODES),
  /** The number of the node that refused, its id, its path from the root and its name; null: the balance did. */
  budget: nullable(Type.Integer()),
  budgetId: nullable(Type.String()),
  budgetPath: nullable(Type.Array(Type.Integer())),
  budgetName: nullable(Type.String()),
  scope: nullable(Type.Enum(APPROVAL_SCOPES)),
  limitMicros: nullable(micros),
  askedBy: Type.Enum(ASKERS),
  /** Written by who asked. */
  reason: Type.String(),
  status: Type.Enum(APPROVAL_STATUSES),
  decision: nullable(Type.Enum(DECISIONS)),
  raisedToMicros: nullable(micros),
  isUsed: Type.Boolean(),
  createdAt: Type.String(),
  expiresAt: Type.String(),
  /** By the clock of Postgres. Negative once it has expired. */
  expiresInMs: Type.Integer(),
  decidedAt: nullable(Type.String()),
  isMailed: Type.Boolean(),
});
export type Approval = Static<typeof Approval>;

const approvalRow = row(Approval);

/** Whether it ended before its time, without an answer: the key that asked can no longer pay. */
export function hasKeyEnded({
  status,
  decidedAt,
  expiresAt,
}: Pick<Approval, 'status' | 'decidedAt' | 'expiresAt'>): boolean {
  return (
    status === 'expired' && decidedAt !== null && Date.parse(decidedAt) < Date.parse(expiresAt)
  );
}

/** The columns of `approvalRows`. An overdue approval counts as expired, even before that is recorded. */
const approvalColumns = sql.fragment`
  a.id, a.account_id as "accountId", a.ledger, a.consumer_id as "consumerId", a.spend_key as "spendKey",
  k.id as "keyId", k.name as "keyName",
  a.developer_id as "developerId", a.tool, a.amount_micros as "amountMicros", a.code, a.budget,
  d.id as "budgetId", d.path as "budgetPath", d.name as "budgetName",
  a.scope, a.limit_micros as "limitMicros", a.asked_by as "askedBy", a.reason,
  case when a.status = 'pending' and a.expires_at <= now() then 'expired' else a.status end as status,
  a.decision, a.raised_to_micros as "raisedToMicros", a.used_by is not null as "isUsed",
  a.created_at as "createdAt", a.expires_at as "expiresAt",
  ceil(extract(epoch from a.expires_at - now()) * 1000)::int8 as "expiresInMs", a.decided_at as "decidedAt",
  a.mailed_at is not null as "isMailed"
`;
/** Rows `a`, each with the budget `d` that refused, if one did, and the spend key `k` that was to pay, if one was. */
const approvalRows = sql.fragment`
  farebox.approvals a left join lateral (
    select id, path, name from farebox.budget_details
    where ledger = a.ledger and consumer_id = a.consumer_id and number = a.budget
  ) d on true
  left join lateral (
    select id, name from farebox.spend_keys
    where ledger = a.ledger and consumer_id = a.consumer_id and number = a.spend_key and developer is null
  ) k on true
`;

/**
 * `payer`: the account's owner and keys see all of its approvals; a spend key sees those that it asked for, and with
 * `withBelow` those of budgets below its own. `developer`: one of its own calls, by its id. If the holder of
 * the key has asked before, the developer gets the holder's approval.
 */
export type ApprovalView =
  | (TreeView & { readonly kind: 'payer'; readonly spendKey: number })
  | { readonly kind: 'developer'; readonly developerNumber: number };

/** Whether the refusing budget is one that the holder of a spend key may change. A condition on a row `a`. */
export function isBelow({ root }: TreeView) {
  if (root === null) return sql.fragment`true`;
  if (!root.withBelow) return sql.fragment`false`;
  return sql.fragment`
    exists (select from farebox.budget_details d
      where d.ledger = a.ledger and d.consumer_id = a.consumer_id and d.number = a.budget
        and d.number <> ${root.number} and d.path @> array[${root.number}::int4])
  `;
}

function isSeenBy(view: ApprovalView) {
  if (view.kind === 'developer') {
    return sql.fragment`a.developer = ${view.developerNumber}`;
  }
  const { ledger, consumerId, spendKey } = view;
  return sql.fragment`
    a.ledger = ${ledger} and a.consumer_id = ${consumerId}
      and (${isBelow(view)} or (a.spend_key = ${spendKey} and a.spend_key > 0))
  `;
}

export async function findApproval(connection: Connection, id: string): Promise<Approval | null> {
  return connection.maybeOne(sql.type(approvalRow)`
    select ${approvalColumns} from ${approvalRows} where a.id = ${id}
  `);
}

/** Finds the approvals that have ended. */
export async function findEnded(
  connection: Connection,
  ids: readonly string[],
): Promise<readonly Approval[]> {
  return connection.any(sql.type(approvalRow)`
    select ${approvalColumns} from ${approvalRows}
    where a.id = any (${sql.array(ids, 'uuid')}) and a.status <> 'pending'
  `);
}

export async function findApprovalFor(
  connection: Connection,
  view: ApprovalView,
  id: string,
): Promise<Approval | null> {
  return connection.maybeOne(sql.type(approvalRow)`
    select ${approvalColumns} from ${approvalRows} where a.id = ${id} and ${isSeenBy(view)}
  `);
}

export interface ApprovalFilter {
  readonly status?: ApprovalStatus | undefined;
  /** A UUID. */
  readonly budgetId?: string | undefined;
}

/** Whether a row `a` has this status now. The pending ones have an index. */
function isIn(status: ApprovalStatus): Fragment {
  if (status === 'pending') return sql.fragment`a.status = 'pending' and a.expires_at > now()`;
  if (status !== 'expired') return sql.fragment`a.status = ${status}`;
  return sql.fragment`(a.status = 'expired' or (a.status = 'pending' and a.expires_at <= now()))`;
}

/** Newest first. */
export async function listApprovals(
  connection: Connection,
  accountId: string,
  view: ApprovalView & { readonly kind: 'payer' },
  { status, budgetId }: ApprovalFilter,
  page: Page,
): Promise<readonly Approval[]> {
  return connection.any(sql.type(approvalRow)`
    select ${approvalColumns} from ${approvalRows}
    where ${sql.and([
      sql.fragment`a.account_id = ${accountId} and ${isSeenBy(view)}`,
      isBefore(page, sql.fragment`a.id`),
      status !== undefined && isIn(status),
      budgetId !== undefined &&
        sql.fragment`a.budget = (select d.number from farebox.budget_details d
          where d.id = ${budgetId} and d.ledger = a.ledger and d.consumer_id = a.consumer_id)`,
    ])}
    order by a.id desc limit ${page.limit}
  `);
}
