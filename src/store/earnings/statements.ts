/**
 * Monthly statements of a consumer and of a developer: the opening figure, the changes, the closing figure.
 * They must be read in one snapshot to add up while charges and rollups continue.
 */
import { Type, type Static } from 'typebox';
import { uuidFloor } from '../../domain/ids.ts';
import { asMicros, type Micros } from '../../domain/money.ts';
import type { ConsumerRef } from '../balance/consumers.ts';
import {
  micros,
  nullable,
  row,
  sql,
  timestampOf,
  type Connection,
  type DeveloperRef,
} from '../database.ts';
import type { ClosedCharges, Counted, Month, ToolCharges } from '../charges/closed-charges.ts';
import { listToolEarnings, type ToolIntervalEarnings } from './earnings-by-tool.ts';
import { earnedIn, type EarningsFilter } from './earnings.ts';
import { spentBefore } from '../balance/spent.ts';

const StatementMovement = Type.Object({
  kind: Type.String(),
  amountMicros: micros,
  /** Beside the amount: paid with a top-up; negative when a refund or a lost dispute returned it to the payer. */
  taxMicros: micros,
  topUpId: nullable(Type.String()),
  reason: nullable(Type.String()),
  createdAt: Type.String(),
});

export interface ConsumerStatement {
  /** Credited minus spent. Money held by a dispute belongs to the consumer until it is taken. */
  readonly openingMicros: Micros;
  readonly movements: readonly Static<typeof StatementMovement>[];
  readonly charges: readonly ToolCharges[];
  readonly closingMicros: Micros;
}

const ToolDayRefunds = Type.Object({
  tool: Type.String(),
  day: Type.String(),
  refunds: Type.Integer(),
  amountMicros: micros,
});

/** By tool, then by day. */
export interface DeveloperStatement {
  readonly openingMicros: Micros;
  /** Earned by charges, before refunds. */
  readonly earned: readonly ToolIntervalEarnings[];
  /** On the day of the refund. */
  readonly refunds: readonly Static<typeof ToolDayRefunds>[];
  readonly closingMicros: Micros;
}

const movementRow = row(StatementMovement);
const refundsRow = row(ToolDayRefunds);
const sumRow = row(Type.Object({ sumMicros: micros }));

/** The tax of movements `m`. A refund and a dispute keep theirs: their shares can be calculated again later. */
const TAX = sql.fragment`
  case when kind = 'top_up' then (select t.tax_micros from farebox.top_ups t where t.id = m.top_up_id)
    else tax_micros end
`;

/** The movements of one kind in a month, which may be millions. Beyond this, a statement has their sums by day. */
const LISTED_MAX = 1_000;

export async function readConsumerStatement(
  tx: Connection,
  closedCharges: ClosedCharges,
  consumer: ConsumerRef,
  month: Month,
  closed: Counted,
): Promise<ConsumerStatement> {
  const { fromMs, toMs } = month;
  const own = sql.fragment`ledger = ${consumer.ledger} and consumer_id = ${consumer.consumerId}`;
  const credited = await tx.oneFirst(sql.type(sumRow)`
    select coalesce(sum(amount_micros), 0)::int8 as "sumMicros" from farebox.movement_sums
    where ${own} and month < (${timestampOf(fromMs)} at time zone 'UTC')::date
  `);
  const openingMicros = asMicros(credited - (await spentBefore(tx, consumer, fromMs)));
  const inMonth = sql.fragment`
    ${own} and created_at >= ${timestampOf(fromMs)} and created_at < ${timestampOf(toMs)}
  `;
  const movements = await tx.any(sql.type(movementRow)`
    with month as materialized (select * from farebox.movements where ${inMonth}),
    many as (select kind from month group by kind having count(*) > ${LISTED_MAX})
    select kind, "amountMicros", "taxMicros", "topUpId", reason, "createdAt"
    from (
      select kind, amount_micros as "amountMicros", ${TAX} as "taxMicros", top_up_id as "topUpId", reason,
        created_at as "createdAt", id
      from month m where kind not in (select kind from many)
      union all
      select kind, sum(amount_micros)::int8, sum(${TAX})::int8, null, null, max(created_at), null
      from month m where kind in (select kind from many)
      group by kind, date_trunc('day', created_at, 'UTC')
    ) listed
    order by "createdAt", id
  `);
  const charges = await closedCharges.countByTool(tx, consumer, month, closed);
  const closingMicros = asMicros(openingMicros + sum(movements) - sum(charges));
  return { openingMicros, movements, charges, closingMicros };
}

/** Rows (tools and days) per query. */
const EARNED_ROWS = 5_000;

export async function readDeveloperStatement(
  tx: Connection,
  developer: DeveloperRef,
  month: Month,
): Promise<DeveloperStatement> {
  // Computed backwards from the total: what precedes the month has more rows each year.
  const sumOf = (range: EarningsFilter) =>
    tx.oneFirst(sql.type(sumRow)`
      select coalesce(sum(amount_micros), 0)::int8 as "sumMicros" from (${earnedIn(developer, range)}) earned
    `);
  const openingMicros = (await sumOf({})) - (await sumOf({ fromMs: month.fromMs }));
  const net = await readNetEarnings(tx, developer, month);
  const refunds = await tx.any(sql.type(refundsRow)`
    select tool, date_trunc('day', uuid_extract_timestamp(id), 'UTC') as day, count(*) as refunds,
      sum(amount_micros)::int8 as "amountMicros"
    from farebox.charge_refunds
    where developer = ${developer.developerNumber}
      and id >= ${uuidFloor(month.fromMs)} and id < ${uuidFloor(month.toMs)}
    group by 1, 2 order by 1, 2
  `);
  const inMonth = net.reduce((total, { earningsMicros }) => total + earningsMicros, 0);
  return {
    openingMicros: asMicros(openingMicros),
    earned: beforeRefunds(net, refunds),
    refunds,
    closingMicros: asMicros(openingMicros + inMonth),
  };
}

async function readNetEarnings(
  tx: Connection,
  developer: DeveloperRef,
  month: Month,
): Promise<ToolIntervalEarnings[]> {
  const earned: ToolIntervalEarnings[] = [];
  for (;;) {
    const page = { limit: EARNED_ROWS, after: earned.at(-1) };
    const rows = await listToolEarnings(tx, developer, month, 'day', page);
    earned.push(...rows);
    if (rows.length < EARNED_ROWS) return earned;
  }
}

/** The sums are net of the refunds made on that day. */
function beforeRefunds(
  net: readonly ToolIntervalEarnings[],
  refunds: DeveloperStatement['refunds'],
): ToolIntervalEarnings[] {
  const refunded = new Map(
    refunds.map(({ tool, day, amountMicros }) => [`${Date.parse(day)} ${tool}`, amountMicros]),
  );
  return net
    .map((row) => {
      const refundedMicros = refunded.get(`${row.beginsMs} ${row.tool}`) ?? 0;
      return { ...row, earningsMicros: asMicros(row.earningsMicros + refundedMicros) };
    })
    .filter(({ charges }) => charges > 0);
}

function sum(rows: readonly { readonly amountMicros: number }[]): number {
  return rows.reduce((total, { amountMicros }) => total + amountMicros, 0);
}
