/**
 * Reads rows in steps, in the order of their ids, for any number of them: each statement ends long before its
 * timeout.
 */
import { Type } from 'typebox';
import { NIL_UUID } from '../domain/ids.ts';
import type { ConsumerRef } from './balance/consumers.ts';
import { row, sql, type Connection, type Fragment } from './database.ts';
import type { OfLightPage } from './page.ts';

/** Takes a few milliseconds, even if each row is read from disk. */
const ROWS_OF_FIRST_STEP = 1_000;
const CHANGE = 4;
/** The next step may take four times as long, and another four if its rows have to be read from disk. */
const QUICK_MS = 250;
const SLOW_MS = 1_000;

export interface IdsBetween {
  readonly fromId: string;
  /** Exclusive. */
  readonly toId: string;
}

export const FIRST_ID = NIL_UUID;
/**
 * The last id of a charge. The index has the first 8 bytes of ids as a signed number; larger ones are of the
 * year 6429 and later.
 */
export const LAST_ID = '7fffffff-ffff-7fff-bfff-ffffffffffff';

/** Rows that one index has in the order of their ids. */
export interface RowsById {
  /** A table and a condition, as it follows `from`. */
  readonly from: Fragment;
  readonly id: Fragment;
}

/** A consumer's charges, by the primary key. */
export function chargesOf({ ledger, consumerId }: ConsumerRef): RowsById {
  return {
    from: sql.fragment`farebox.charges where ledger = ${ledger} and consumer_id = ${consumerId}`,
    id: sql.fragment`id`,
  };
}

type Side = 'oldest' | 'newest';

const boundRow = row(Type.Object({ id: Type.String() }));

/**
 * The parts of a range, the oldest or the newest first. They grow while the caller's work on them is quick,
 * and shrink when it is slow.
 */
export async function* inSteps(
  connection: Connection,
  rows: RowsById,
  range: IdsBetween,
  side: Side,
  rowsOfFirstStep = ROWS_OF_FIRST_STEP,
): AsyncGenerator<IdsBetween, void> {
  let { fromId, toId } = range;
  let size = rowsOfFirstStep;
  while (fromId < toId) {
    const beganMs = performance.now();
    const step = await partOf(connection, rows, { fromId, toId }, side, size);
    yield step;
    if (side === 'oldest') fromId = step.toId;
    else toId = step.fromId;
    const tookMs = performance.now() - beganMs;
    if (tookMs < QUICK_MS) size *= CHANGE;
    if (tookMs > SLOW_MS) size = Math.ceil(size / CHANGE);
  }
}

/**
 * A page of the rows that match, newest first, when they may be few of millions. The newest rows often fill a
 * page, so the first steps are small.
 */
export async function pageInSteps<T extends { readonly id: string } & Partial<OfLightPage>>(
  connection: Connection,
  rows: RowsById,
  range: IdsBetween,
  limit: number,
  list: (step: IdsBetween, limit: number) => Promise<readonly T[]>,
): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const step of inSteps(connection, rows, range, 'newest')) {
    found.push(...(await list(step, limit - found.length)));
    if (found.length === limit || found.at(-1)?.hasNext === true) break;
  }
  return found;
}

/** With at most one row more than `size`. */
async function partOf(
  connection: Connection,
  { from, id }: RowsById,
  { fromId, toId }: IdsBetween,
  side: Side,
  size: number,
): Promise<IdsBetween> {
  const order = side === 'oldest' ? sql.fragment`asc` : sql.fragment`desc`;
  const bound = await connection.maybeOneFirst(sql.type(boundRow)`
    select ${id} as id from ${from} and ${id} >= ${fromId} and ${id} < ${toId}
    order by ${id} ${order} offset ${size} limit 1
  `);
  return side === 'oldest' ? { fromId, toId: bound ?? toId } : { fromId: bound ?? fromId, toId };
}
