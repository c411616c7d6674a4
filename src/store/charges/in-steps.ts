/** Reads a consumer's charges in steps, for any number of them: each statement ends long before its timeout. */
import { Type } from 'typebox';
import type { ConsumerRef } from '../balance/consumers.ts';
import { row, sql, type Connection } from '../database.ts';

/** Takes a few milliseconds, even if each charge is read from disk. */
const CHARGES_OF_FIRST_STEP = 1_000;
const CHANGE = 4;
/** The next step may take four times as long, and another four if its charges have to be read from disk. */
const QUICK_MS = 250;
const SLOW_MS = 1_000;

export interface IdsBetween {
  readonly fromId: string;
  /** Exclusive. */
  readonly toId: string;
}

type Side = 'oldest' | 'newest';

const boundRow = row(Type.Object({ id: Type.String() }));

/**
 * The parts of a range, the oldest or the newest first. They grow while the caller's work on them is quick, and shrink when
 * it is slow.
 */
export async function* inSteps(
  connection: Connection,
  consumer: ConsumerRef,
  range: IdsBetween,
  side: Side,
  chargesOfFirstStep = CHARGES_OF_FIRST_STEP,
): AsyncGenerator<IdsBetween, void> {
  let { fromId, toId } = range;
  let charges = chargesOfFirstStep;
  while (fromId < toId) {
    const beganMs = performance.now();
    const step = await partOf(connection, consumer, { fromId, toId }, side, charges);
    yield step;
    if (side === 'oldest') fromId = step.toId;
    else toId = step.fromId;
    const tookMs = performance.now() - beganMs;
    if (tookMs < QUICK_MS) charges *= CHANGE;
    if (tookMs > SLOW_MS) charges = Math.ceil(charges / CHANGE);
  }
}

/** With at most one charge more than `charges`. */
async function partOf(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
  { fromId, toId }: IdsBetween,
  side: Side,
  charges: number,
): Promise<IdsBetween> {
  const order = side === 'oldest' ? sql.fragment`asc` : sql.fragment`desc`;
  const bound = await connection.maybeOneFirst(sql.type(boundRow)`
    select id from farebox.charges
    where ledger = ${ledger} and consumer_id = ${consumerId} and id >= ${fromId} and id < ${toId}
    order by id ${order} offset ${charges} limit 1
  `);
  return side === 'oldest' ? { fromId, toId: bound ?? toId } : { fromId: bound ?? fromId, toId };
}
