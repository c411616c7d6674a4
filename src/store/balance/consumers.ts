/** Consumers: the counters that a balance is read from. */
import { Type } from 'typebox';
import { asMicros, type Micros } from '../../domain/money.ts';
import { type Connection, type Fragment, idRow, row, sql, type Transaction } from '../database.ts';

/** Identifies a consumer: the primary key of its row. */
export interface ConsumerRef {
  readonly ledger: number;
  readonly consumerId: string;
}

export interface Counters {
  readonly balance: Micros;
  /** Still owed for refunds and disputes. The balance is 0 while this is positive. */
  readonly debt: Micros;
  /** The sum of all its charges. */
  readonly spent: Micros;
  /** The sum of all refunds of those charges. */
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
): Promise<Counters> {
  const found = await connection.one(sql.type(countersRow)`
    select ${balanceOf('consumers')} as balance, spent_micros as spent,
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
