/**
 * What the spend keys of a budget and of all budgets below it spent, by key, tool, developer or day: the sums plus the
 * tails, as with earnings. Each budget has sums of its own, so a read takes no longer with a million keys
 * than with one.
 */
import { Type } from 'typebox';
import type { UsageGroup } from '../../domain/budget.ts';
import { asMicros, type Micros } from '../../domain/money.ts';
import type { ConsumerRef } from '../balance/consumers.ts';
import { ARCHIVED_BEFORE } from '../charges/archived.ts';
import { isOfKey, spendKeyOf } from '../charges/charge-origin.ts';
import { micros, nullable, row, sql, timestampOf, type Connection } from '../database.ts';
import { within, type HourRange } from '../earnings/earnings.ts';
import type { TreeView } from './budgets.ts';
import { waitingSpending } from './waiting-spending.ts';

/** A node by its number in its consumer's tree. */
export interface NodeRef extends ConsumerRef {
  readonly number: number;
}

/**
 * A node with the view of who reads it. Sums count the keys of all nodes below it, whether or not the view
 * shows those nodes.
 */
export type SeenNode = NodeRef & Pick<TreeView, 'root'>;

/** The keys that a reader of the node sees one by one: its own, and those of nodes below it that the view shows. */
export function isKeyOf({ number, root }: SeenNode) {
  return root === null || root.withBelow
    ? sql.fragment`path @> array[${number}::int4]`
    : sql.fragment`budget = ${number}`;
}

/** Net of refunds, which count when they are made. */
interface Spent {
  readonly spentMicros: Micros;
  readonly charges: number;
}

export interface BudgetUsage {
  /** The sums of the whole range, not only of this page. */
  readonly total: Spent;
  /** `mark` is unique: a key's id, a tool's name, a developer's id, or a day as ISO 8601. */
  readonly groups: readonly (Spent & {
    readonly mark: string;
    /** The name of a key, if it has one. */
    readonly name: string | null;
  })[];
}

/** The day and the total in which a `minute` counts. */
export const KEY_SPANS = sql.fragment`
  (values ('day', date_trunc('day', minute, 'UTC')), ('all', '-infinity'::timestamptz)) as s (span, begins_at)
`;

const DAY_OF_TAIL = sql.fragment`date_trunc('day', minute, 'UTC')`;

/**
 * Charges by spend keys since the archived months, and the refunds made since then, from which the sums and the tail
 * are computed.
 */
export const SPENT_BY_KEYS = sql.fragment`
  select ledger, consumer_id, ${spendKeyOf('charges')} as spend_key, developer, tool,
    uuid_extract_timestamp(id) as minute, amount_micros, 1 as charges
  from farebox.charges where ${isOfKey('charges')}
  union all
  select ledger, consumer_id, spend_key, developer, tool, uuid_extract_timestamp(id), -amount_micros, 0
  from farebox.charge_refunds where spend_key is not null and uuid_extract_timestamp(id) >= ${ARCHIVED_BEFORE}
`;

/** The sums of keys, added up at each budget on their paths. */
export const SPENT_BY_BUDGETS = sql.fragment`
  select s.ledger, s.consumer_id, n.budget, g.grouped_by, s.span, s.begins_at, g.mark, s.amount_micros, s.charges
  from farebox.key_spending s
  join farebox.spend_keys k on k.ledger = s.ledger and k.consumer_id = s.consumer_id and k.number = s.spend_key
  cross join lateral unnest(k.path) as n (budget)
  cross join lateral (values ('tool', s.tool), ('developer', s.developer::text)) as g (grouped_by, mark)
`;

const groupRow = row(
  Type.Object({
    totalMicros: micros,
    totalCharges: Type.Integer(),
    mark: nullable(Type.String()),
    name: nullable(Type.String()),
    spentMicros: nullable(micros),
    charges: nullable(Type.Integer()),
  }),
);

/**
 * Keys and days newest first, tools by name, developers in the order in which they signed up. `after` is the
 * last mark of the page before.
 */
export async function readBudgetUsage(
  connection: Connection,
  node: SeenNode,
  group: UsageGroup,
  range: HourRange,
  { limit, after }: { readonly limit: number; readonly after?: string | undefined },
): Promise<BudgetUsage> {
  const groupedBy = group === 'developer' ? 'developer' : 'tool';
  const page =
    group === 'key'
      ? keysPage(node, range, after, limit)
      : group === 'developer'
        ? developersPage(after, limit)
        : sql.fragment`${marksPage(group, after)} limit ${limit}`;
  const rows = await connection.any(sql.type(groupRow)`
    with waiting as (${waitingAt(node, range, groupedBy)}), spent as materialized (
      select ${GROUPED[group]} as grouped, sum(amount_micros) as micros, sum(charges) as charges
      from (${spentAt(node, range, group, groupedBy)}) e group by 1
    )
    select t.micros as "totalMicros", t.charges as "totalCharges", g.mark, g.name, g.micros as "spentMicros", g.charges
    from (
      select coalesce(sum(micros), 0)::int8 as micros, coalesce(sum(charges), 0)::int8 as charges from spent
    ) t
    left join lateral (${page}) g on true
  `);
  const [first] = rows;
  return {
    total: { spentMicros: first?.totalMicros ?? asMicros(0), charges: first?.totalCharges ?? 0 },
    groups: rows.flatMap(({ mark: marked, name, spentMicros, charges }) =>
      marked === null || spentMicros === null || charges === null
        ? []
        : [{ mark: marked, name, spentMicros, charges }],
    ),
  };
}

const isMarkRow = row(Type.Object({ isMark: Type.Boolean() }));

/** Whether a group of the consumer's can have this mark, for those whose place in the order depends on a row. */
export async function isMark(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
  group: UsageGroup,
  mark: string,
): Promise<boolean> {
  if (group !== 'key' && group !== 'developer') return true;
  const found =
    group === 'key'
      ? sql.fragment`farebox.spend_keys where id = ${mark} and ledger = ${ledger} and consumer_id = ${consumerId}`
      : sql.fragment`farebox.accounts where developer_id = ${mark}`;
  return connection.oneFirst(sql.type(isMarkRow)`select exists (select from ${found}) as "isMark"`);
}

/** How the sums of a node are grouped. By key, only the total is read: keys have sums of their own. */
const GROUPED = {
  key: sql.fragment`null::text`,
  tool: sql.fragment`mark`,
  developer: sql.fragment`mark`,
  day: sql.fragment`farebox.wire_time(begins_at)`,
} as const;

/** What the node spent, as rows of `mark, begins_at, amount_micros, charges`. */
function spentAt(
  { ledger, consumerId, number }: NodeRef,
  range: HourRange,
  group: UsageGroup,
  groupedBy: 'tool' | 'developer',
) {
  return sql.fragment`
    select mark, begins_at, amount_micros, charges from farebox.budget_spending
    where ledger = ${ledger} and consumer_id = ${consumerId} and budget = ${number}
      and grouped_by = ${groupedBy} and span = ${spanOf(range, group)} and ${within(sql.fragment`begins_at`, range)}
    union all
    select mark, begins_at, amount_micros, charges from waiting`;
}

/**
 * The charges that are still in the tails, with their key. Each key is looked up once, regardless of its
 * number of charges.
 */
function waitingAt(
  { ledger, consumerId, number }: NodeRef,
  range: HourRange,
  groupedBy: 'tool' | 'developer',
) {
  return sql.fragment`
    select t.spend_key as number, k.id, k.name, k.path, k.budget, t.mark, t.begins_at, t.amount_micros, t.charges
    from (
      select spend_key, ${sql.identifier([groupedBy])}::text as mark, ${DAY_OF_TAIL} as begins_at,
        sum(amount_micros) as amount_micros, sum(charges) as charges
      from (${waitingSpending(consumerId)}) w where ${within(DAY_OF_TAIL, range)}
      group by 1, 2, 3
    ) t
    cross join lateral (
      select id, name, path, budget from farebox.spend_keys
      where ledger = ${ledger} and consumer_id = ${consumerId} and number = t.spend_key
      limit 1
    ) k
    where k.path @> array[${number}::int4]`;
}

function marksPage(group: 'tool' | 'day', after: string | undefined) {
  const isDescending = group === 'day';
  const isAfter =
    after === undefined
      ? sql.fragment`true`
      : isDescending
        ? sql.fragment`grouped < ${after} collate "C"`
        : sql.fragment`grouped > ${after} collate "C"`;
  return sql.fragment`
    select grouped as mark, null as name, micros::int8 as micros, charges::int8 as charges from spent
    where ${isAfter} order by grouped collate "C" ${isDescending ? sql.fragment`desc` : sql.fragment`asc`}`;
}

/**
 * By number, so that only the accounts on the page are looked up; each by a probe, as the planner might read
 * them all instead.
 */
function developersPage(after: string | undefined, limit: number) {
  const isAfter =
    after === undefined
      ? sql.fragment`true`
      : sql.fragment`grouped::int4 > (select developer_number from farebox.accounts where developer_id = ${after})`;
  return sql.fragment`
    select a.developer_id::text as mark, null as name, d.micros, d.charges
    from (
      select grouped::int4 as number, micros::int8 as micros, charges::int8 as charges from spent
      where ${isAfter} order by 1 limit ${limit}
    ) d
    cross join lateral (
      select developer_id from farebox.accounts where developer_number = d.number limit 1
    ) a
    order by d.number`;
}

/**
 * By number, which is the order in which keys are created and listed. Keys are read in this order until the
 * page is full, so the sums of no key behind it are read.
 */
function keysPage(node: SeenNode, range: HourRange, after: string | undefined, limit: number) {
  const { ledger, consumerId } = node;
  const ofConsumer = sql.fragment`ledger = ${ledger} and consumer_id = ${consumerId}`;
  const isAfter =
    after === undefined
      ? sql.fragment`true`
      : sql.fragment`number < (select number from farebox.spend_keys where id = ${after} and ${ofConsumer})`;
  return sql.fragment`
    select id::text as mark, name, sum(micros)::int8 as micros, sum(charges)::int8 as charges
    from (
      (select number, id, name, micros, charges from farebox.spend_keys k
        cross join lateral (
          select sum(amount_micros) as micros, sum(charges) as charges from farebox.key_spending
          where ${ofConsumer} and spend_key = k.number and span = ${spanOf(range, 'key')}
            and ${within(sql.fragment`begins_at`, range)}
          having count(*) > 0
        ) s
        where ${ofConsumer} and ${isKeyOf(node)} and ${isAfter} order by number desc limit ${limit})
      union all
      select number, id, name, amount_micros, charges from waiting where ${isKeyOf(node)} and ${isAfter}
    ) e
    group by number, id, name order by number desc limit ${limit}`;
}

/** The sums of days, or those of all time. */
function spanOf({ fromMs, toMs }: HourRange, group: UsageGroup): 'day' | 'all' {
  return group === 'day' || fromMs !== undefined || toMs !== undefined ? 'day' : 'all';
}

const exportRow = row(
  Type.Object({
    number: Type.Integer(),
    keyId: Type.String(),
    keyName: nullable(Type.String()),
    day: Type.String(),
    developerNumber: Type.Integer(),
    developerId: Type.String(),
    tool: Type.String(),
    spentMicros: micros,
    charges: Type.Integer(),
  }),
);

/** What one key spent on one tool of one developer on one UTC day. */
export interface KeyDaySpending extends Spent {
  readonly number: number;
  readonly keyId: string;
  readonly keyName: string | null;
  /** As a timestamp. */
  readonly day: string;
  readonly developerNumber: number;
  readonly developerId: string;
  readonly tool: string;
}

/**
 * By key, oldest first, then day, developer and tool: the order of the sums' own key. Keys and their sums are read in
 * this order until the page is full, so a page takes no longer with a million keys.
 */
export async function listKeyDays(
  connection: Connection,
  node: SeenNode,
  range: HourRange,
  { limit, after }: { readonly limit: number; readonly after?: KeyDaySpending | undefined },
): Promise<readonly KeyDaySpending[]> {
  const { ledger, consumerId } = node;
  const ofConsumer = sql.fragment`ledger = ${ledger} and consumer_id = ${consumerId}`;
  const [isKeyAfter, isAfter] = after
    ? [
        sql.fragment`number >= ${after.number}`,
        sql.fragment`(number, begins_at, developer, tool) >
          (${after.number}, ${timestampOf(Date.parse(after.day))}, ${after.developerNumber}, ${after.tool})`,
      ]
    : [sql.fragment`true`, sql.fragment`true`];
  // A group has one sum, so the page has no group behind the first sums, or behind the first groups that wait.
  return connection.any(sql.type(exportRow)`
    with sums as (
      select number, id, name, s.* from (
        select number, id, name from farebox.spend_keys where ${ofConsumer} and ${isKeyOf(node)} and ${isKeyAfter}
        order by number
      ) k
      cross join lateral (
        select begins_at, developer, tool, amount_micros as micros, charges from farebox.key_spending
        where ${ofConsumer} and spend_key = number and span = 'day' and ${within(sql.fragment`begins_at`, range)}
          and ${isAfter}
        order by begins_at, developer, tool limit ${limit}
      ) s
      order by number, begins_at, developer, tool limit ${limit}
    ), waiting as (
      select number, id, name, w.* from (
        select spend_key, ${DAY_OF_TAIL} as begins_at, developer, tool, sum(amount_micros) as micros, sum(charges) as charges
        from (${waitingSpending(consumerId)}) t where ${within(DAY_OF_TAIL, range)}
        group by 1, 2, 3, 4
      ) w
      cross join lateral (
        select number, id, name from farebox.spend_keys
        where ${ofConsumer} and number = spend_key and ${isKeyOf(node)} limit 1
      ) k
      where ${isAfter}
      order by number, begins_at, developer, tool limit ${limit}
    ), page as (
      select number, begins_at, developer, tool, id, name, sum(micros)::int8 as micros, sum(charges)::int8 as charges
      from (
        select number, begins_at, developer, tool, id, name, micros, charges from sums
        union all select number, begins_at, developer, tool, id, name, micros, charges from waiting
      ) e
      group by 1, 2, 3, 4, 5, 6 order by 1, 2, 3, 4 limit ${limit}
    )
    select number, id as "keyId", name as "keyName", begins_at as day, developer as "developerNumber",
      developer_id as "developerId", tool, micros as "spentMicros", charges
    from page p
    cross join lateral (
      select developer_id from farebox.accounts where developer_number = p.developer limit 1
    ) a
    order by 1, 4, 5, 7
  `);
}
