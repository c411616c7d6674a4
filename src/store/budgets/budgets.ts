/** Budgets as they are read: with what they have used in the current windows, and what is left on their paths. */
import { Type, type Static } from 'typebox';
import { windowEnd, windowUnitOf, type BudgetStatus } from '../../domain/budget.ts';
import { asMicros } from '../../domain/money.ts';
import type { Actor } from '../audit/actor.ts';
import type { ConsumerRef } from '../balance/consumers.ts';
import {
  micros,
  nullable,
  row,
  sql,
  storedMetadata,
  type Connection,
  type Fragment,
} from '../database.ts';
import { lightPage, type OfLightPage, type Page } from '../page.ts';
import { windowUsedNow, type Budget } from './budget.ts';

const BudgetRow = Type.Object({
  id: Type.String(),
  number: Type.Integer(),
  path: Type.Array(Type.Integer()),
  parentId: nullable(Type.String()),
  name: Type.String(),
  isClosed: Type.Boolean(),
  isExpired: Type.Boolean(),
  limitMicros: nullable(micros),
  usedMicros: micros,
  windowUnit: Type.Integer(),
  windowLimitMicros: nullable(micros),
  windowUsedMicros: micros,
  windowBegan: nullable(Type.String()),
  remainingMicros: nullable(micros),
  maxPerCallMicros: nullable(micros),
  allowLeases: Type.Boolean(),
  maxLeaseMicros: nullable(micros),
  tools: nullable(Type.Array(Type.String())),
  developers: nullable(Type.Array(Type.String())),
  approveDevelopers: Type.Boolean(),
  approvedDevelopers: Type.Array(Type.String()),
  mayDelegate: Type.Boolean(),
  limitsConsumerKeys: Type.Boolean(),
  metadata: storedMetadata,
  expiresAt: nullable(Type.String()),
  hasNext: Type.Boolean(),
});
const budgetRow = row(BudgetRow);
const numberRow = row(Type.Object({ number: Type.Integer() }));

/** The part of a consumer's tree that a caller sees: all of it, or the node of this number, alone or with all below. */
export interface TreeView extends ConsumerRef {
  readonly root: { readonly number: number; readonly withBelow: boolean } | null;
  /** Who makes changes, for the audit log; absent on the command line. */
  readonly by?: Actor;
}

/** A caller that makes budgets and spend keys. Without `root`, it sees the whole tree; without `by`, it is the program. */
export type Maker = ConsumerRef & Partial<Pick<TreeView, 'root' | 'by'>>;

/**
 * The last number that a maker may give to a budget or a spend key; `max` is the last one of the account. A number is
 * never free again. So spend keys leave half of them to keys of the account, and those leave a tenth to the owner.
 */
export function lastNumberFor({ root, by }: Maker, max: number): number {
  if (root) return max / 2;
  return by?.kind === 'key' ? (max * 9) / 10 : max;
}

/** About what a row of `budget_details` has in a reply. Ids are counted: their text would take PostgreSQL much longer. */
const bytes = sql.fragment`
  500 + octet_length(metadata) + 40 * (coalesce(cardinality(developers), 0) + cardinality(approved_developers))
    + coalesce(octet_length(array_to_string(tools, '   ')), 0)
`;

/**
 * The budgets of `page`, rows of `budget_details` of one consumer, with what is left on their paths. Each
 * node on a path is read once, even if many of the page are below it. By `= any`, so that nodes are found by
 * their index regardless of how many the planner expects.
 */
function readWithPaths({ ledger, consumerId }: ConsumerRef, page: Fragment) {
  const ofPaths = sql.fragment`
    ledger = ${ledger} and consumer_id = ${consumerId}
      and number = any ((select array_agg(distinct n) from page cross join lateral unnest(path) n)::int4[])
  `;
  return sql.type(budgetRow)`
    with page as materialized (${lightPage(page, sql.fragment`number desc`, bytes)}), details as materialized (
      select number, id, expires_at from farebox.budget_details where ${ofPaths}
    ), counters as materialized (
      select * from farebox.budgets where ${ofPaths}
    ), nodes as materialized (
      select b.*, q.id, q.expires_at, w.began[b.window_unit] as window_begins, ${windowUsedNow} as window_used
      from (select farebox.windows_at(now()) as began offset 0) w
      cross join counters b join details q using (number)
    ), on_paths as (
      select p.number, bool_or(n.is_closed) as is_closed, bool_or(n.expires_at <= now()) as is_over,
        min(least(n.limit_micros - n.used_micros, n.window_limit_micros - n.window_used)) as remaining
      from page p cross join lateral unnest(p.path) as above (number) join nodes n on n.number = above.number
      group by 1
    )
    select d.id, d.number, d.path, above.id as "parentId", d.name, o.is_closed as "isClosed", coalesce(o.is_over, false) as "isExpired",
      b.limit_micros as "limitMicros", b.used_micros as "usedMicros", b.window_unit as "windowUnit",
      b.window_limit_micros as "windowLimitMicros", b.window_used as "windowUsedMicros",
      b.window_begins as "windowBegan", o.remaining as "remainingMicros",
      d.max_per_call_micros as "maxPerCallMicros", d.allow_leases as "allowLeases",
      d.max_lease_micros as "maxLeaseMicros", d.tools, d.developers, d.approve_developers as "approveDevelopers",
      d.approved_developers as "approvedDevelopers", d.may_delegate as "mayDelegate",
      exists (
        select from farebox.spend_keys k
        where k.ledger = ${ledger} and k.consumer_id = ${consumerId} and k.budget = any (array[d.number])
          and k.developer is not null
      ) as "limitsConsumerKeys",
      nullif(d.metadata, '')::json as metadata, d.expires_at as "expiresAt",
      d.has_next as "hasNext"
    from page d
    join on_paths o on o.number = d.number
    join nodes b on b.number = d.number
    left join nodes above on above.number = d.path[cardinality(d.path) - 1]
    order by d.number desc
  `;
}

/** Newest first: those that the view shows, or the children of one node. */
export async function listBudgets(
  connection: Connection,
  view: TreeView,
  parentNumber: number | undefined,
  { limit, beforeId }: Page,
): Promise<readonly (Budget & OfLightPage)[]> {
  const rows = await connection.any(
    readWithPaths(
      view,
      // By number: the only index that finds a consumer's nodes has this order.
      sql.fragment`
        select d.* from farebox.budget_details d
        where ${sql.and([
          seenIn(view),
          beforeId !== undefined && before(view, beforeId),
          parentNumber !== undefined &&
            sql.fragment`d.path[cardinality(d.path) - 1] = ${parentNumber}`,
        ])}
        order by d.number desc limit ${limit}`,
    ),
  );
  return rows.map((found) => ({ ...budgetOf(found), hasNext: found.hasNext }));
}

export async function findBudget(
  connection: Connection,
  view: TreeView,
  id: string,
): Promise<Budget | null> {
  const found = await connection.maybeOne(
    readWithPaths(
      view,
      sql.fragment`select d.* from farebox.budget_details d where ${seenIn(view)} and d.id = ${id}`,
    ),
  );
  return found && budgetOf(found);
}

/** Null: the view shows no such node. */
export async function findBudgetNumber(
  connection: Connection,
  view: TreeView,
  id: string,
): Promise<number | null> {
  return connection.maybeOneFirst(sql.type(numberRow)`
    select d.number from farebox.budget_details d where ${seenIn(view)} and d.id = ${id}
  `);
}

/** By its number in the consumer's tree. */
export async function getBudgetOfNumber(
  connection: Connection,
  consumer: ConsumerRef,
  number: number,
): Promise<Budget> {
  const { ledger, consumerId } = consumer;
  return budgetOf(
    await connection.one(
      readWithPaths(
        consumer,
        sql.fragment`
          select d.* from farebox.budget_details d
          where d.ledger = ${ledger} and d.consumer_id = ${consumerId} and d.number = ${number}`,
      ),
    ),
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
  const { isClosed, isExpired, remainingMicros, hasNext: _, ...others } = found;
  const { windowUnit, windowLimitMicros, windowUsedMicros, windowBegan, ...budget } = others;
  const unit = windowUnitOf(windowUnit);
  return {
    ...budget,
    status: statusOf(isClosed, isExpired),
    window:
      unit === null || windowBegan === null
        ? null
        : {
            unit,
            limitMicros: windowLimitMicros ?? asMicros(0),
            usedMicros: windowUsedMicros,
            resetsAt: windowEnd(unit, windowBegan),
          },
    // A limit may be set below what is used.
    remainingMicros: remainingMicros && asMicros(Math.max(remainingMicros, 0)),
  };
}

function statusOf(isClosed: boolean, isExpired: boolean): BudgetStatus {
  if (isClosed) return 'closed';
  return isExpired ? 'expired' : 'active';
}
