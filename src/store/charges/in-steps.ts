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

const boundRow = row(Type.Object({ id: Type.String() }));

/** Steps through the charges of one consumer. They grow while they are quick, and shrink when they are slow. */
export class Steps {
  readonly #connection: Connection;
  readonly #consumer: ConsumerRef;
  #charges: number;
  #beganMs: number | undefined;

  constructor(
    connection: Connection,
    consumer: ConsumerRef,
    chargesOfFirstStep = CHARGES_OF_FIRST_STEP,
  ) {
    this.#connection = connection;
    this.#consumer = consumer;
    this.#charges = chargesOfFirstStep;
  }

  /** The oldest or the newest part of a range. What the caller does until the next call is the step. */
  async take({ fromId, toId }: IdsBetween, side: 'oldest' | 'newest'): Promise<IdsBetween> {
    this.#adapt();
    const { ledger, consumerId } = this.#consumer;
    const order = side === 'oldest' ? sql.fragment`asc` : sql.fragment`desc`;
    const bound = await this.#connection.maybeOneFirst(sql.type(boundRow)`
      select id from farebox.charges
      where ledger = ${ledger} and consumer_id = ${consumerId} and id >= ${fromId} and id < ${toId}
      order by id ${order} offset ${this.#charges} limit 1
    `);
    return side === 'oldest' ? { fromId, toId: bound ?? toId } : { fromId: bound ?? fromId, toId };
  }

  #adapt(): void {
    const nowMs = performance.now();
    const tookMs = this.#beganMs === undefined ? undefined : nowMs - this.#beganMs;
    this.#beganMs = nowMs;
    if (tookMs === undefined) return;
    if (tookMs < QUICK_MS) this.#charges *= CHANGE;
    if (tookMs > SLOW_MS) this.#charges = Math.ceil(this.#charges / CHANGE);
  }
}
