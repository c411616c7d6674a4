/**
 * Why a balance is what it is: the sums of all that moved it. All of them come from one snapshot, so that they add up
 * during charges.
 */
import { Type, type Static } from 'typebox';
import { MOVEMENT_KINDS } from '../../domain/movement.ts';
import { micros, nullable, row, sql, type Connection } from '../database.ts';
import { isBefore, type Page } from '../page.ts';
import { isOpen, openHoldFloor } from '../holds/hold.ts';
import type { ConsumerRef } from './consumers.ts';

const Kind = Type.Enum(MOVEMENT_KINDS);

const Books = Type.Object({
  creditedMicros: micros,
  spentMicros: micros,
  heldMicros: micros,
  refundedMicros: micros,
  /** The parts of `held`: by open holds, and by open disputes. */
  heldByHoldsMicros: micros,
  heldByDisputesMicros: micros,
  openHolds: Type.Integer(),
  debtMicros: micros,
  /** The parts of `credited`. */
  movements: Type.Array(Type.Object({ kind: Kind, count: Type.Integer(), amountMicros: micros })),
});
export type Books = Static<typeof Books>;

const Movement = Type.Object({
  id: Type.String(),
  kind: Kind,
  amountMicros: micros,
  topUpId: nullable(Type.String()),
  reason: nullable(Type.String()),
  createdAt: Type.String(),
});
export type StoredMovement = Static<typeof Movement>;

const booksRow = row(Books);
const movementRow = row(Movement);

/** A hold that has expired stays open until a worker sees that it is due. */
const OLDEST_OPEN = openHoldFloor(sql.fragment`
  least(now(), (select min(due_at) from farebox.hold_expiries))
`);

export async function getBooks(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
): Promise<Books> {
  const own = sql.fragment`ledger = ${ledger} and consumer_id = ${consumerId}`;
  return connection.one(sql.type(booksRow)`
    select c.credited_micros as "creditedMicros", c.spent_micros as "spentMicros",
      c.held_micros as "heldMicros", c.refunded_micros as "refundedMicros",
      c.reserved_micros as "heldByHoldsMicros", c.held_micros - c.reserved_micros as "heldByDisputesMicros",
      (select count(*) from farebox.holds where ${own} and ${isOpen('holds')} and id > ${OLDEST_OPEN}) as "openHolds",
      (select coalesce(sum(debt_micros), 0)::int8 from farebox.reversals
        where ${own} and debt_micros > 0) as "debtMicros",
      (select coalesce(json_agg(k order by k.kind), '[]') from (
        select kind, sum(movements)::int8 as count, sum(amount_micros)::int8 as "amountMicros"
        from farebox.movement_sums where ${own} group by kind having sum(movements) > 0
      ) k) as movements
    from farebox.consumers c
    where c.ledger = ${ledger} and c.id = ${consumerId}
  `);
}

/** Newest first: one scan of the primary key. */
export async function listMovements(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
  page: Page,
): Promise<readonly StoredMovement[]> {
  return connection.any(sql.type(movementRow)`
    select id, kind, amount_micros as "amountMicros", top_up_id as "topUpId", reason,
      created_at as "createdAt"
    from farebox.movements where ledger = ${ledger} and consumer_id = ${consumerId} and ${isBefore(page)}
    order by id desc limit ${page.limit}
  `);
}
