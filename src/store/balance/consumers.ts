/** Consumers: the counters that a balance is read from. */
import { Type, type Static } from 'typebox';
import {
  type Connection,
  type Fragment,
  idRow,
  micros,
  row,
  sql,
  type Transaction,
} from '../database.ts';

/** Identifies a consumer: the primary key of its row. */
export interface ConsumerRef {
  readonly ledger: number;
  readonly consumerId: string;
}

const Counters = Type.Object({
  balanceMicros: micros,
  /** On hold: what open holds and leases reserve, and what is disputed. It is not in the balance. */
  heldMicros: micros,
  /** Still owed for refunds and disputes. The balance is 0 while this is positive. */
  debtMicros: micros,
  /** The sum of all its charges. */
  spentMicros: micros,
  /** The sum of all refunds of those charges. */
  refundedMicros: micros,
});

const countersRow = row(Counters);

/**
 * What the consumer can spend, of a row that the statement names `consumers`. The SQL functions that charge and the
 * constraint `consumers_not_overspent` say the same.
 */
export function balanceOf(consumers: string): Fragment {
  const counter = (name: string) => sql.identifier([consumers, name]);
  return sql.fragment`(${counter('credited_micros')} - ${counter('spent_micros')} - ${counter('held_micros')})`;
}

/** Two index probes, regardless of the number of charges. */
export async function getCounters(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
): Promise<Static<typeof Counters>> {
  return connection.one(sql.type(countersRow)`
    select ${balanceOf('consumers')} as "balanceMicros", held_micros as "heldMicros", spent_micros as "spentMicros",
      refunded_micros as "refundedMicros",
      (select coalesce(sum(debt_micros), 0)::int8 from farebox.reversals
        where ledger = ${ledger} and consumer_id = ${consumerId} and debt_micros > 0) as "debtMicros"
    from farebox.consumers where ledger = ${ledger} and id = ${consumerId}
  `);
}

/**
 * Every change of a consumer's money or settings locks this row before top-ups and settings. What locks the
 * account or a notice too does so before, and an account only `for no key update`, so that rows which refer
 * to it are inserted meanwhile. Another order could deadlock. The whole order is in
 * docs/decisions/0017-automatic-top-ups-begin-in-the-charge.md.
 */
export async function lockConsumer(
  tx: Transaction,
  { ledger, consumerId }: ConsumerRef,
): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    select from farebox.consumers where ledger = ${ledger} and id = ${consumerId} for update
  `);
}

/** The consumers that another transaction has locked now. Does not wait for locks. */
export async function findLockedConsumers(
  connection: Connection,
  consumers: readonly ConsumerRef[],
): Promise<ReadonlySet<string>> {
  const distinct = new Map(consumers.map((each) => [each.consumerId, each.ledger]));
  const locked = await connection.anyFirst(sql.type(idRow)`
    with asked as (
      select * from ${sql.unnest(
        [...distinct].map(([id, ledger]) => [ledger, id]),
        ['int2', 'uuid'],
      )} as a (ledger, id)
    ), free as materialized (
      select c.id from asked a cross join lateral (
        select id from farebox.consumers where ledger = a.ledger and id = a.id for update skip locked
      ) c
    )
    select id from asked where id not in (select id from free)
  `);
  return new Set(locked);
}
