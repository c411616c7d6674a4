/** Consumers: the counters that a balance is read from. */
import { Type } from 'typebox';
import { asMicros, type Micros } from '../../domain/money.ts';
import { row, sql, type Connection, type Transaction } from '../database.ts';

/** A consumer's place in the ledger: the key of its row. */
export interface ConsumerRef {
  readonly ledger: number;
  readonly consumerId: string;
}

export interface Counters {
  readonly balance: Micros;
  /** What its refunds and disputes are owed; the balance is 0 then. */
  readonly debt: Micros;
  /** The sum of all its charges. */
  readonly spent: Micros;
  /** The sum of all refunds of them. */
  readonly refunded: Micros;
}

const countersRow = row(
  Type.Object({
    balance: Type.Integer(),
    debt: Type.Integer(),
    spent: Type.Integer(),
    refunded: Type.Integer(),
  }),
);

/** Two probes of indexes, however many charges there are. */
export async function getCounters(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
): Promise<Counters> {
  const found = await connection.one(sql.type(countersRow)`
    select credited_micros - spent_micros - held_micros as balance, spent_micros as spent,
      refunded_micros as refunded,
      (select coalesce(sum(debt_micros), 0)::int8 from farebox.reversals
        where ledger = ${ledger} and consumer_id = ${consumerId} and debt_micros > 0) as debt
    from farebox.consumers where ledger = ${ledger} and id = ${consumerId}
  `);
  return {
    balance: asMicros(found.balance),
    debt: asMicros(found.debt),
    spent: asMicros(found.spent),
    refunded: asMicros(found.refunded),
  };
}

/**
 * What changes a consumer's money or settings locks this row first, and then top-ups and settings: always in
 * this order, or two of them would wait for each other.
 */
export async function lockConsumer(
  tx: Transaction,
  { ledger, consumerId }: ConsumerRef,
): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    select from farebox.consumers where ledger = ${ledger} and id = ${consumerId} for update
  `);
}

const idRow = row(Type.Object({ id: Type.String() }));

/** Which of these consumers somebody else has locked now. Waits for none of them. */
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
      select c.id from asked a join farebox.consumers c on c.ledger = a.ledger and c.id = a.id
      for update of c skip locked
    )
    select id from asked where id not in (select id from free)
  `);
  return new Set(locked);
}
