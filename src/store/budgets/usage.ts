/**
 * What the spend keys of a budget and of all budgets below it spent, by key, tool, developer or day: the sums plus the
 * tail, as with earnings. Read through the keys' current paths, so a node that moves takes its usage along.
 */
import { Type } from 'typebox';
import type { UsageGroup } from '../../domain/budget.ts';
import { asMicros, type Micros } from '../../domain/money.ts';
import type { ConsumerRef } from '../balance/consumers.ts';
import { ARCHIVED_BEFORE } from '../charges/archived.ts';
import { micros, nullable, row, sql, timestampOf, type Connection } from '../database.ts';
import { within, type HourRange } from '../earnings/earnings.ts';

/** A node by its number in its consumer's tree. */
export interface NodeRef extends ConsumerRef {
  readonly number: number;
}

/** Net of refunds, which count when they are made. */
interface Spent {
  readonly spentMicros: Micros;
  readonly charges: number;
}

export interface BudgetUsage {
  /** Of the whole range, not only this page. */
  readonly total: Spent;
  /** In the order of `mark`, which is unique: a key's id, a tool's name, a developer's id, or a day as ISO 8601. */
  readonly groups: readonly (Spent & {
    readonly mark: string;
    /** Of a key that has one. */
    readonly name: string | null;
  })[];
}

/** The day and the total in which what a `minute` has counts. */
export const KEY_SPANS = sql.fragment`
  (values ('day', date_trunc('day', minute, 'UTC')), ('all', '-infinity'::timestamptz)) as s (span, begins_at)
`;

/**
 * Charges by spend keys since the archived months, and the refunds made since then, from which the sums and the tail
 * are computed.
 */
export const SPENT_BY_KEYS = sql.fragment`
  select ledger, consumer_id, substr(origin, 1, 4)::int4 as spend_key, developer, tool,
    uuid_extract_timestamp(id) as minute, amount_micros, 1 as charges
  from farebox.charges where origin <> '' and substr(origin, 1, 4)::int4 > 0
  union all
  select ledger, consumer_id, spend_key, developer, tool, uuid_extract_timestamp(id), -amount_micros, 0
  from farebox.charge_refunds where spend_key is not null and uuid_extract_timestamp(id) >= ${ARCHIVED_BEFORE}
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

/** By mark: keys and days newest first, tools and developers in their order. `after` is the last mark of the page before. */
export async function readBudgetUsage(
  connection: Connection,
  node: NodeRef,
  group: UsageGroup,
  range: HourRange,
  { limit, after }: { readonly limit: number; readonly after?: string | undefined },
): Promise<BudgetUsage> {
  const isDescending = group === 'key' || group === 'day';
  const { of, mark, join } = GROUPS[group];
  const span = group === 'day' || isLimited(range) ? 'day' : 'all';
  const rows = await connection.any(sql.type(groupRow)`
    with ${keysOf(node)}, spent as materialized (
      select ${of} as grouped, sum(amount_micros) as micros, sum(charges) as charges
      from (${spentIn(node, range, span)}) e group by 1
    )
    select t.micros as "totalMicros", t.charges as "totalCharges", g.mark, g.name, g.micros as "spentMicros", g.charges
    from (
      select coalesce(sum(micros), 0)::int8 as micros, coalesce(sum(charges), 0)::int8 as charges from spent
    ) t
    left join lateral (
      select * from (
        select ${mark} as mark, ${group === 'key' ? sql.fragment`k.name` : sql.fragment`null`} as name, spent.micros::int8 as micros, spent.charges::int8 as charges from spent ${join(node)}
      ) m
      where ${
        after === undefined
          ? sql.fragment`true`
          : isDescending
            ? sql.fragment`mark < ${after} collate "C"`
            : sql.fragment`mark > ${after} collate "C"`
      }
      order by mark collate "C" ${isDescending ? sql.fragment`desc` : sql.fragment`asc`} limit ${limit}
    ) g on true
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

const GROUPS: Readonly<
  Record<
    UsageGroup,
    {
      readonly of: ReturnType<typeof sql.fragment>;
      readonly mark: ReturnType<typeof sql.fragment>;
      readonly join: (node: NodeRef) => ReturnType<typeof sql.fragment>;
    }
  >
> = {
  key: {
    of: sql.fragment`spend_key`,
    mark: sql.fragment`k.id::text`,
    join: ({ ledger, consumerId }) => sql.fragment`
      join farebox.spend_keys k on k.ledger = ${ledger} and k.consumer_id = ${consumerId} and k.number = spent.grouped`,
  },
  tool: { of: sql.fragment`tool`, mark: sql.fragment`grouped`, join: () => sql.fragment`` },
  developer: {
    of: sql.fragment`developer`,
    mark: sql.fragment`a.developer_id::text`,
    join: () => sql.fragment`join farebox.accounts a on a.developer_number = spent.grouped`,
  },
  day: {
    of: sql.fragment`begins_at`,
    mark: sql.fragment`to_char(grouped at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
    join: () => sql.fragment``,
  },
};

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

/** By key, oldest first, then day, developer and tool: the order of the sums' own key. */
export async function listKeyDays(
  connection: Connection,
  node: NodeRef,
  range: HourRange,
  { limit, after }: { readonly limit: number; readonly after?: KeyDaySpending | undefined },
): Promise<readonly KeyDaySpending[]> {
  const { ledger, consumerId } = node;
  return connection.any(sql.type(exportRow)`
    with ${keysOf(node)}
    select e.spend_key as number, k.id as "keyId", k.name as "keyName", e.begins_at as day, e.developer as "developerNumber",
      a.developer_id as "developerId", e.tool, e.micros::int8 as "spentMicros", e.charges::int8 as charges
    from (
      select spend_key, begins_at, developer, tool, sum(amount_micros) as micros, sum(charges) as charges
      from (${spentIn(node, range, 'day')}) e
      where ${
        after === undefined
          ? sql.fragment`true`
          : sql.fragment`(spend_key, begins_at, developer, tool) >
              (${after.number}, ${timestampOf(Date.parse(after.day))}, ${after.developerNumber}, ${after.tool})`
      }
      group by 1, 2, 3, 4 order by 1, 2, 3, 4 limit ${limit}
    ) e
    join farebox.spend_keys k on k.ledger = ${ledger} and k.consumer_id = ${consumerId} and k.number = e.spend_key
    join farebox.accounts a on a.developer_number = e.developer
    order by 1, 4, 5, 7
  `);
}

function isLimited({ fromMs, toMs }: HourRange): boolean {
  return fromMs !== undefined || toMs !== undefined;
}

function keysOf({ ledger, consumerId, number }: NodeRef) {
  return sql.fragment`
    keys as (
      select number from farebox.spend_keys
      where ledger = ${ledger} and consumer_id = ${consumerId} and path @> array[${number}::int4]
    )`;
}

/** Of the `keys`, as rows of `spend_key, developer, tool, begins_at, amount_micros, charges`. */
function spentIn({ ledger, consumerId }: NodeRef, range: HourRange, span: 'day' | 'all') {
  const day = sql.fragment`date_trunc('day', t.minute, 'UTC')`;
  return sql.fragment`
    select s.spend_key, s.developer, s.tool, s.begins_at, s.amount_micros, s.charges
    from keys join farebox.key_spending s on s.ledger = ${ledger} and s.consumer_id = ${consumerId}
      and s.spend_key = keys.number and s.span = ${span}
    where ${within(sql.fragment`s.begins_at`, range)}
    union all
    select t.spend_key, t.developer, t.tool, ${day}, t.amount_micros, t.charges
    from farebox.earnings_tail t
    where t.consumer_id = ${consumerId} and t.spend_key in (select number from keys)
      and ${within(day, range)}`;
}
