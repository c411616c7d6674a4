/**
 * A consumer's charges of a month by tool, for any number of charges: counted in steps, and what is closed is counted
 * once and remembered. A charge commits within a minute of its id, so older ones never change. An archived month has only
 * sums.
 */
import { LRUCache } from 'lru-cache';
import { Type, type Static } from 'typebox';
import { uuidFloor } from '../../domain/ids.ts';
import type { ConsumerRef } from '../balance/consumers.ts';
import { readArchivedBefore } from '../charges/archived.ts';
import { asMicros } from '../../domain/money.ts';
import { micros, row, sql, timestampOf, type Connection } from '../database.ts';

export interface Month {
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * A charge belongs to the month in which its id was created. It may then wait some seconds in the queue and in the
 * database before it commits, and the clocks of servers differ by seconds.
 */
export const LATEST_COMMIT_MS = 60_000;

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
const boundRow = row(Type.Object({ id: Type.String() }));
const nowRow = row(Type.Object({ nowMs: Type.Integer() }));

/** Charges in one statement, which takes less than 5 s even if each is read from disk. */
const CHARGES_PER_STEP = 50_000;
/** Remembered rows of tools, about 200 bytes each. */
const TOOLS_MAX = 100_000;

export class ClosedCharges {
  readonly #counted = new LRUCache<string, Counted>({
    maxSize: TOOLS_MAX,
    sizeCalculation: ({ byTool }) => byTool.size + 1,
  });
  readonly #chargesPerStep: number;

  constructor(chargesPerStep = CHARGES_PER_STEP) {
    this.#chargesPerStep = chargesPerStep;
  }

  /**
   * Counts what is closed by now. Its statements need not share a snapshot, because closed charges never change. So the
   * connection can have one for each: counting millions of charges takes long.
   */
  async countClosed(connection: Connection, consumer: ConsumerRef, month: Month): Promise<Counted> {
    const start = { nextId: uuidFloor(month.fromMs), byTool: new Map() };
    if (month.toMs <= (await readArchivedBefore(connection))) return start;
    const nowMs = await connection.oneFirst(sql.type(nowRow)`
      select floor(extract(epoch from now()) * 1000)::int8 as "nowMs"
    `);
    const closedId = uuidFloor(Math.min(nowMs - LATEST_COMMIT_MS, month.toMs));
    const key = `${consumer.consumerId} ${month.fromMs}`;
    let counted: Counted = this.#counted.get(key) ?? start;
    while (counted.nextId < closedId) {
      const boundId = await this.#boundOf(connection, consumer, counted.nextId, closedId);
      const more = await countBetween(connection, consumer, counted.nextId, boundId);
      counted = { nextId: boundId, byTool: plus(counted.byTool, more) };
      this.#counted.set(key, counted);
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
    const open = await countBetween(tx, consumer, closed.nextId, uuidFloor(month.toMs));
    return sorted([...plus(closed.byTool, open).values()]);
  }

  /** The id behind as many charges as one step may count. */
  async #boundOf(
    connection: Connection,
    { ledger, consumerId }: ConsumerRef,
    fromId: string,
    toId: string,
  ): Promise<string> {
    const bound = await connection.maybeOneFirst(sql.type(boundRow)`
      select id from farebox.charges
      where ledger = ${ledger} and consumer_id = ${consumerId} and id >= ${fromId} and id < ${toId}
      order by id offset ${this.#chargesPerStep} limit 1
    `);
    return bound ?? toId;
  }
}

async function countBetween(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
  fromId: string,
  toId: string,
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
