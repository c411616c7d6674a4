/** Budgets as they are read: with what they have used in the windows of now, and what is left on their paths. */
import { Type, type Static } from 'typebox';
import { windowEnd, windowUnitOf, type BudgetStatus } from '../../domain/budget.ts';
import { asMicros, type Micros } from '../../domain/money.ts';
import type { Actor } from '../audit/actor.ts';
import type { ConsumerRef } from '../balance/consumers.ts';
import type { Page } from '../charges/list-charges.ts';
import { row, sql, type Connection } from '../database.ts';
import type { Budget } from './budget.ts';

const Scalar = Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]);
const IntegerOrNull = Type.Union([Type.Integer(), Type.Null()]);
const StringOrNull = Type.Union([Type.String(), Type.Null()]);
const StringsOrNull = Type.Union([Type.Array(Type.String()), Type.Null()]);

const BudgetRow = Type.Object({
  id: Type.String(),
  number: Type.Integer(),
  path: Type.Array(Type.Integer()),
  parentId: StringOrNull,
  name: Type.String(),
  isClosed: Type.Boolean(),
  isExpired: Type.Boolean(),
  limitMicros: IntegerOrNull,
  usedMicros: Type.Integer(),
  windowUnit: Type.Integer(),
  windowLimitMicros: IntegerOrNull,
  windowUsedMicros: Type.Integer(),
  windowBegan: StringOrNull,
  remainingMicros: IntegerOrNull,
  maxPerCallMicros: IntegerOrNull,
  allowLeases: Type.Boolean(),
  maxLeaseMicros: IntegerOrNull,
  tools: StringsOrNull,
  developers: StringsOrNull,
  approveDevelopers: Type.Boolean(),
  approvedDevelopers: Type.Array(Type.String()),
  mayDelegate: Type.Boolean(),
  metadata: Type.Union([Type.Record(Type.String(), Scalar), Type.Null()]),
  expiresAt: StringOrNull,
});
const budgetRow = row(BudgetRow);

/** The part of a consumer's tree that somebody sees: all of it, or the node of this number, alone or with all below. */
export interface TreeView extends ConsumerRef {
  readonly root: { readonly number: number; readonly withBelow: boolean } | null;
  /** Who makes changes, for the audit log; absent on the command line. */
  readonly by?: Actor;
}

/** What a window has used by now; in a window that is over, nothing. */
const windowUsed = (node: 'b' | 'p') => {
  const of = (column: string) => sql.identifier([node, column]);
  return sql.fragment`case when ${of('window_began')} < w.began[${of('window_unit')}] then 0
    else ${of('window_used_micros')} end`;
};

const columns = sql.fragment`
  d.id, d.number, d.path, above.id as "parentId", d.name, on_path."isClosed", on_path."isExpired",
    b.limit_micros as "limitMicros", b.used_micros as "usedMicros", b.window_unit as "windowUnit",
    b.window_limit_micros as "windowLimitMicros", ${windowUsed('b')} as "windowUsedMicros",
    w.began[b.window_unit] as "windowBegan", on_path.remaining as "remainingMicros",
    d.max_per_call_micros as "maxPerCallMicros", d.allow_leases as "allowLeases",
    d.max_lease_micros as "maxLeaseMicros", d.tools, d.developers, d.approve_developers as "approveDevelopers",
    d.approved_developers as "approvedDevelopers", d.may_delegate as "mayDelegate",
    nullif(d.metadata, '')::json as metadata, d.expires_at as "expiresAt"
`;

/**
 * Of nodes `d`. `limit 1` makes each of these a probe, also while the planner takes the tables for small. `offset 0` has the
 * windows computed once, and not at each use.
 */
const joined = sql.fragment`
  cross join (select farebox.windows_at(now()) as began offset 0) w
  cross join lateral (
    select * from farebox.budgets where ledger = d.ledger and consumer_id = d.consumer_id and number = d.number
    limit 1
  ) b
  cross join lateral (
    select min(least(p.limit_micros - p.used_micros, p.window_limit_micros - ${windowUsed('p')})) as remaining,
      bool_or(p.is_closed) as "isClosed", coalesce(bool_or(q.expires_at <= now()), false) as "isExpired"
    from unnest(d.path) as n (number)
    cross join lateral (
      select * from farebox.budgets where ledger = d.ledger and consumer_id = d.consumer_id and number = n.number
      limit 1
    ) p
    cross join lateral (
      select expires_at from farebox.budget_details
      where ledger = d.ledger and consumer_id = d.consumer_id and number = n.number
      limit 1
    ) q
  ) on_path
  left join lateral (
    select id from farebox.budget_details
    where ledger = d.ledger and consumer_id = d.consumer_id and number = d.path[cardinality(d.path) - 1]
    limit 1
  ) above on true
`;

/** Newest first: those that the view shows, or the children of one node. */
export async function listBudgets(
  connection: Connection,
  view: TreeView,
  parentNumber: number | undefined,
  { limit, beforeId }: Page,
): Promise<readonly Budget[]> {
  // By number, which the only index that a consumer's nodes are found by is in the order of; and the page first, so
  // that what is joined is joined for its nodes alone.
  const rows = await connection.any(sql.type(budgetRow)`
    select ${columns} from (
      select d.* from farebox.budget_details d
      where ${seenIn(view)}
        and ${beforeId === undefined ? sql.fragment`true` : before(view, beforeId)}
        and ${
          parentNumber === undefined
            ? sql.fragment`true`
            : sql.fragment`d.path[cardinality(d.path) - 1] = ${parentNumber}`
        }
      order by d.number desc limit ${limit}
    ) d ${joined} order by d.number desc
  `);
  return rows.map(budgetOf);
}

export async function findBudget(
  connection: Connection,
  view: TreeView,
  id: string,
): Promise<Budget | null> {
  const found = await connection.maybeOne(sql.type(budgetRow)`
    select ${columns} from farebox.budget_details d ${joined} where ${seenIn(view)} and d.id = ${id}
  `);
  return found && budgetOf(found);
}

/** By its number in the consumer's tree. */
export async function getBudgetOfNumber(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
  number: number,
): Promise<Budget> {
  return budgetOf(
    await connection.one(sql.type(budgetRow)`
      select ${columns} from farebox.budget_details d ${joined}
      where d.ledger = ${ledger} and d.consumer_id = ${consumerId} and d.number = ${number}
    `),
  );
}

function before({ ledger, consumerId }: TreeView, id: string) {
  return sql.fragment`
    d.number < (select c.number from farebox.budget_details c
      where c.id = ${id} and c.ledger = ${ledger} and c.consumer_id = ${consumerId})
  `;
}

function seenIn({ ledger, consumerId, root }: TreeView) {
  const part =
    root === null
      ? sql.fragment`true`
      : root.withBelow
        ? sql.fragment`d.path @> array[${root.number}::int4]`
        : sql.fragment`d.number = ${root.number}`;
  return sql.fragment`d.ledger = ${ledger} and d.consumer_id = ${consumerId} and ${part}`;
}

function budgetOf(found: Static<typeof BudgetRow>): Budget {
  const { isClosed, isExpired, windowUnit, windowLimitMicros, windowUsedMicros, windowBegan } =
    found;
  const unit = windowUnitOf(windowUnit);
  return {
    id: found.id,
    number: found.number,
    path: found.path,
    parentId: found.parentId,
    name: found.name,
    status: statusOf(isClosed, isExpired),
    limitMicros: microsOrNull(found.limitMicros),
    usedMicros: asMicros(found.usedMicros),
    window:
      unit === null || windowBegan === null
        ? null
        : {
            unit,
            limitMicros: asMicros(windowLimitMicros ?? 0),
            usedMicros: asMicros(windowUsedMicros),
            resetsAt: windowEnd(unit, windowBegan),
          },
    // A limit may be set below what is used.
    remainingMicros: microsOrNull(found.remainingMicros && Math.max(found.remainingMicros, 0)),
    maxPerCallMicros: microsOrNull(found.maxPerCallMicros),
    allowLeases: found.allowLeases,
    maxLeaseMicros: microsOrNull(found.maxLeaseMicros),
    tools: found.tools,
    developers: found.developers,
    approveDevelopers: found.approveDevelopers,
    approvedDevelopers: found.approvedDevelopers,
    mayDelegate: found.mayDelegate,
    metadata: found.metadata,
    expiresAt: found.expiresAt,
  };
}

function statusOf(isClosed: boolean, isExpired: boolean): BudgetStatus {
  if (isClosed) return 'closed';
  return isExpired ? 'expired' : 'active';
}

function microsOrNull(value: number | null): Micros | null {
  return value === null ? null : asMicros(value);
}
