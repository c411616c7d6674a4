/**
 * A consumer's charges by tool, for any number of charges: counted in steps, month by month, and what is closed is
 * counted once and remembered. The transaction of a charge begins within a minute of its id, so what is a
 * minute older than the oldest transaction that has not ended never changes, unless Postgres' clock is set
 * back: then everything is forgotten. An archived month has only sums.
 */
import { LRUCache } from 'lru-cache';
import { Type, type Static } from 'typebox';
import { TIME_MS_MAX, uuidFloor, uuidTimeMs } from '../../domain/ids.ts';
import type { ConsumerRef } from '../balance/consumers.ts';
import { readArchivedBefore } from './archived.ts';
import { chargesOf, inSteps, type IdsBetween } from '../in-steps.ts';
import { asMicros, type Micros } from '../../domain/money.ts';
import { readOldestWrite } from '../writers.ts';
import { micros, nullable, row, sql, timestampOf, type Connection } from '../database.ts';

export interface Month {
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * A charge belongs to the month in which its id was created. It may then wait some seconds in the queue before its
 * transaction begins, and the clocks of servers differ by seconds.
 */
export const LATEST_BEGINNING_MS = 60_000;

const ToolCharges = Type.Object({
  tool: Type.String(),
  charges: Type.Integer(),
  amountMicros: micros,
});

export type ToolCharges = Static<typeof ToolCharges>;

type ByTool = ReadonlyMap<string, ToolCharges>;

/** Never changed: callers at the same time count on from the same one. */
export interface Counted {
  /** All charges of the month with smaller ids are counted. */
  readonly nextId: string;
  readonly byTool: ByTool;
}

const toolRow = row(ToolCharges);
const endsRow = row(
  Type.Object({ oldest: nullable(Type.String()), newest: nullable(Type.String()) }),
);

/** Remembered rows of tools, about 200 bytes each. */
const TOOLS_MAX = 100_000;

export class ClosedCharges {
  #counted = newMemory();
  readonly #chargesOfFirstStep: number | undefined;

  constructor(chargesOfFirstStep?: number) {
    this.#chargesOfFirstStep = chargesOfFirstStep;
  }

  /** Forgets all counts. A count that is in progress finishes, but is not remembered. */
  forget(): void {
    this.#counted = newMemory();
  }

  /**
   * Counts what is closed by now. Its statements need not share a snapshot, because closed charges never change. So the
   * connection can have one for each: counting millions of charges takes long.
   */
  async countClosed(connection: Connection, consumer: ConsumerRef, month: Month): Promise<Counted> {
    const key = `${consumer.consumerId} ${month.fromMs}`;
    const remembered = this.#counted;
    const known = remembered.get(key);
    if (known?.nextId === uuidFloor(month.toMs)) return known;
    const start = { nextId: uuidFloor(month.fromMs), byTool: new Map() };
    if (month.toMs <= (await readArchivedBefore(connection))) return start;
    const beganMs = await readOldestWrite(connection);
    const closedId = uuidFloor(Math.min(beganMs - LATEST_BEGINNING_MS, month.toMs));
    let counted: Counted = known ?? start;
    const left = { fromId: counted.nextId, toId: closedId };
    for await (const step of this.#inSteps(connection, consumer, left)) {
      const more = await countBetween(connection, consumer, step);
      counted = { nextId: step.toId, byTool: plus(counted.byTool, more) };
      remembered.set(key, counted);
    }
    return counted;
  }

  /** Until now, by the snapshot of `tx`; sorted by tool. Adds to what `countClosed` returned just before. */
  async countByTool(
    tx: Connection,
    consumer: ConsumerRef,
    month: Month,
    closed: Counted,
  ): Promise<ToolCharges[]> {
    if (month.toMs <= (await readArchivedBefore(tx))) {
      return sorted(await archivedByTool(tx, consumer, month));
    }
    const open = await countBetween(tx, consumer, {
      fromId: closed.nextId,
      toId: uuidFloor(month.toMs),
    });
    return sorted([...plus(closed.byTool, open).values()]);
  }

  /**
   * The sum of a tool's charges between two instants, in micros, without archived ones. Its statements need not share a
   * snapshot.
   */
  async sumOfTool(
    connection: Connection,
    consumer: ConsumerRef,
    tool: string,
    { fromMs = 0, toMs = TIME_MS_MAX }: Partial<Month>,
  ): Promise<Micros> {
    let sum = 0;
    for (const month of await monthsOf(connection, consumer)) {
      const from = Math.max(month.fromMs, fromMs);
      const to = Math.min(month.toMs, toMs);
      if (from >= to) continue;
      const isWhole = from === month.fromMs && to === month.toMs;
      const closed = isWhole ? await this.countClosed(connection, consumer, month) : undefined;
      sum += closed?.byTool.get(tool)?.amountMicros ?? 0;
      const left = { fromId: closed?.nextId ?? uuidFloor(from), toId: uuidFloor(to) };
      sum += await this.#sumBetween(connection, consumer, tool, left);
    }
    return asMicros(sum);
  }

  async #sumBetween(
    connection: Connection,
    consumer: ConsumerRef,
    tool: string,
    range: IdsBetween,
  ): Promise<number> {
    let sum = 0;
    for await (const step of this.#inSteps(connection, consumer, range)) {
      const counted = await countBetween(connection, consumer, step);
      sum += counted.find((each) => each.tool === tool)?.amountMicros ?? 0;
    }
    return sum;
  }

  #inSteps(connection: Connection, consumer: ConsumerRef, range: IdsBetween) {
    return inSteps(connection, chargesOf(consumer), range, 'oldest', this.#chargesOfFirstStep);
  }
}

function newMemory(): LRUCache<string, Counted> {
  return new LRUCache({ maxSize: TOOLS_MAX, sizeCalculation: ({ byTool }) => byTool.size + 1 });
}

/** From that of the consumer's oldest charge to that of the newest. */
async function monthsOf(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
): Promise<readonly Month[]> {
  const own = sql.fragment`ledger = ${ledger} and consumer_id = ${consumerId}`;
  const { oldest, newest } = await connection.one(sql.type(endsRow)`
    select (select id from farebox.charges where ${own} order by id limit 1) as oldest,
      (select id from farebox.charges where ${own} order by id desc limit 1) as newest
  `);
  const months: Month[] = [];
  if (oldest === null || newest === null) return months;
  const begin = new Date(uuidTimeMs(oldest));
  const monthAt = (ahead: number) => Date.UTC(begin.getUTCFullYear(), begin.getUTCMonth() + ahead);
  while (monthAt(months.length) <= uuidTimeMs(newest)) {
    months.push({ fromMs: monthAt(months.length), toMs: monthAt(months.length + 1) });
  }
  return months;
}

async function countBetween(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
  { fromId, toId }: IdsBetween,
): Promise<readonly ToolCharges[]> {
  return connection.any(sql.type(toolRow)`
    select tool, count(*) as charges, sum(amount_micros)::int8 as "amountMicros" from farebox.charges
    where ledger = ${ledger} and consumer_id = ${consumerId} and id >= ${fromId} and id < ${toId}
    group by tool
  `);
}

async function archivedByTool(
  tx: Connection,
  { ledger, consumerId }: ConsumerRef,
  { fromMs }: Month,
): Promise<readonly ToolCharges[]> {
  return tx.any(sql.type(toolRow)`
    select tool, sum(charges)::int8 as charges, sum(amount_micros)::int8 as "amountMicros"
    from farebox.archived_charges
    where ledger = ${ledger} and consumer_id = ${consumerId}
      and month = (${timestampOf(fromMs)} at time zone 'UTC')::date
    group by tool
  `);
}

function sorted(charges: readonly ToolCharges[]): ToolCharges[] {
  return charges.toSorted((a, b) => (a.tool < b.tool ? -1 : 1));
}

function plus(byTool: ByTool, more: readonly ToolCharges[]): ByTool {
  const all = new Map(byTool);
  for (const { tool, charges, amountMicros } of more) {
    const before = all.get(tool);
    all.set(tool, {
      tool,
      charges: (before?.charges ?? 0) + charges,
      amountMicros: asMicros((before?.amountMicros ?? 0) + amountMicros),
    });
  }
  return all;
}
