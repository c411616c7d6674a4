/**
 * Lots: a consumer's credits, as intervals on the axis of its lifetime spending. The first $10.00 credited is the lot
 * from 0 to 10 million micros, the next $5.00 the lot from 10 to 15 million. Lots follow each other without a gap and
 * end at `credited`. Only unspent positions ever move, so the past never changes. All functions here require that the
 * caller's transaction has locked the consumer.
 */
import { Type } from 'typebox';
import type { MovementKind } from '../../domain/movement.ts';
import type { ConsumerRef } from './consumers.ts';
import { unspentLots } from './first-lot.ts';
import { idRow, micros, row, sql, type Transaction } from '../database.ts';

/** A change of `credited`. `amountMicros` is positive in both directions. */
export interface Movement {
  /** The credit of a top-up writes its own (credit-top-up.ts). */
  readonly kind: Exclude<MovementKind, 'top_up'>;
  readonly amountMicros: number;
  /** Credits form a lot of this top-up; debits are taken from its lots first. */
  readonly topUpId?: string | undefined;
  readonly reversalId?: string | undefined;
  readonly reason?: string | undefined;
  /** A UUIDv7 whose time the movement gets. */
  readonly datedBy?: string | undefined;
}

const roomRow = row(Type.Object({ hasRoom: Type.Boolean() }));
const cutRow = row(Type.Object({ cutMicros: micros }));

/** Amounts are exact up to here, and `consumers_credited_is_exact` lets nothing beyond it: 9 billion dollars. */
const CREDITED_MICROS_MAX = Number.MAX_SAFE_INTEGER;

/** Whether the consumer, who has to be locked, can be credited this at all. */
export async function hasRoomFor(
  tx: Transaction,
  { ledger, consumerId }: ConsumerRef,
  amountMicros: number,
): Promise<boolean> {
  return tx.oneFirst(sql.type(roomRow)`
    select credited_micros <= ${CREDITED_MICROS_MAX}::int8 - ${amountMicros}::int8 as "hasRoom"
    from farebox.consumers where ledger = ${ledger} and id = ${consumerId}
  `);
}

/** Adds a lot after all others. */
export async function addLot(
  tx: Transaction,
  consumer: ConsumerRef,
  movement: Movement,
): Promise<void> {
  const { ledger, consumerId } = consumer;
  const { amountMicros, topUpId } = movement;
  const id = await insertMovement(tx, consumer, movement, amountMicros);
  await tx.query(sql.typeAlias('nothing')`
    with raised as (
      update farebox.consumers set credited_micros = credited_micros + ${amountMicros}::int8
      where ledger = ${ledger} and id = ${consumerId}
      returning credited_micros
    )
    insert into farebox.lots (ledger, consumer_id, movement_id, from_micros, to_micros, top_up_id)
    select ${ledger}::int2, ${consumerId}::uuid, ${id}::uuid, credited_micros - ${amountMicros}::int8,
      credited_micros, ${topUpId ?? null}::uuid
    from raised
  `);
}

/**
 * Cuts the amount off the ends of lots: first those of the movement's top-up, then the others, in the order in which
 * they would be spent. Later lots move down by as much. Throws when the balance is too low.
 */
export async function cutLots(
  tx: Transaction,
  consumer: ConsumerRef,
  movement: Movement,
): Promise<void> {
  const { ledger, consumerId } = consumer;
  const { amountMicros, topUpId } = movement;
  await insertMovement(tx, consumer, movement, -amountMicros);
  const cutMicros = await tx.oneFirst(sql.type(cutRow)`
    with unspent as (
      select *, top_up_id is not null and top_up_id is not distinct from ${topUpId ?? null}::uuid as is_own
      from ${unspentLots(consumer)} l
    ),
    reached as (
      select *, sum(micros) over (
        order by is_own desc, from_micros, to_micros, movement_id rows unbounded preceding
      ) as through
      from unspent
    ),
    cuts as (
      select *, greatest(least(micros, ${amountMicros}::int8 - (through - micros)), 0) as cut
      from reached
    ),
    placed as (
      select *, sum(cut) over (
        order by from_micros, to_micros, movement_id rows unbounded preceding
      ) as down
      from cuts
    ),
    moved as (
      update farebox.lots l
      set from_micros = p.from_micros - (p.down - p.cut), to_micros = p.to_micros - p.down
      from placed p
      where l.ctid = any (array(select place from placed where down > 0)) and l.movement_id = p.movement_id
    ),
    lowered as (
      update farebox.consumers set credited_micros = credited_micros - ${amountMicros}::int8
      where ledger = ${ledger} and id = ${consumerId}
    )
    select coalesce(sum(cut), 0)::int8 as "cutMicros" from cuts
  `);
  if (cutMicros !== amountMicros) {
    throw new Error(`lots have ${cutMicros} of the ${amountMicros} to be taken`);
  }
}

/**
 * Without `datedBy`, a credit has the time when its transaction began, so no charge of it is earlier. A debit has the
 * time when it is made, under the lock, so none of the credits that it takes is later. Otherwise a month that ends
 * between the two would close with a balance below zero.
 */
async function insertMovement(
  tx: Transaction,
  { ledger, consumerId }: ConsumerRef,
  { kind, topUpId, reversalId, reason, datedBy }: Movement,
  signedMicros: number,
): Promise<string> {
  const undated = signedMicros > 0 ? sql.fragment`now()` : sql.fragment`clock_timestamp()`;
  // The id has the time of Postgres: the clock of this machine may be wrong.
  return tx.oneFirst(sql.type(idRow)`
    insert into farebox.movements
      (ledger, consumer_id, id, kind, amount_micros, top_up_id, reversal_id, reason, created_at)
    values (${ledger}, ${consumerId}, uuidv7(), ${kind}, ${signedMicros}, ${topUpId ?? null},
      ${reversalId ?? null}, ${reason ?? null},
      coalesce(uuid_extract_timestamp(${datedBy ?? null}::uuid), ${undated}))
    returning id
  `);
}
