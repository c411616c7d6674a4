/**
 * Debts: the part of a refund or dispute that the balance could not cover. A consumer never has both a debt and a
 * balance: every transaction that raises a balance ends by repaying debts from it.
 */
import { Type } from 'typebox';
import { CLAIMS, REVERSAL_KINDS, REVERSAL_STATUSES } from '../../domain/reversal.ts';
import { balanceOf, type ConsumerRef } from './consumers.ts';
import { micros, row, sql, type Transaction } from '../database.ts';
import { cutLots } from './lots.ts';

const debtRow = row(
  Type.Object({ id: Type.String(), ledger: Type.Integer(), consumerId: Type.String() }),
);
const coverableRow = row(
  Type.Object({
    kind: Type.Enum(REVERSAL_KINDS),
    status: Type.Enum(REVERSAL_STATUSES),
    topUpId: Type.String(),
    coveredMicros: micros,
  }),
);

/** Repays the oldest debt first. The caller must have locked the consumers. */
export async function repayDebts(
  tx: Transaction,
  consumers: readonly ConsumerRef[],
): Promise<void> {
  const debts = await tx.any(sql.type(debtRow)`
    select id, ledger, consumer_id as "consumerId" from farebox.reversals
    where debt_micros > 0 and (ledger, consumer_id) in (select * from ${sql.unnest(
      consumers.map(({ ledger, consumerId }) => [ledger, consumerId]),
      ['int2', 'uuid'],
    )} as c (ledger, id))
    order by id
  `);
  for (const debt of debts) await cover(tx, debt, debt.id);
}

/** Covers a reversal's claim as far as the balance goes, temporarily (a hold) or permanently. */
export async function cover(
  tx: Transaction,
  { ledger, consumerId }: ConsumerRef,
  reversalId: string,
): Promise<void> {
  const { kind, status, topUpId, coveredMicros } = await tx.one(sql.type(coverableRow)`
    select r.kind, r.status, r.top_up_id as "topUpId",
      least(r.debt_micros, ${balanceOf('c')}) as "coveredMicros"
    from farebox.reversals r
    join farebox.consumers c on c.ledger = r.ledger and c.id = r.consumer_id
    where r.id = ${reversalId}
  `);
  if (coveredMicros === 0) return;
  // A warning only ever holds.
  if (CLAIMS[status] === 'hold' || kind === 'warning') {
    await tx.query(sql.typeAlias('nothing')`
      with held as (
        update farebox.consumers set held_micros = held_micros + ${coveredMicros}::int8
        where ledger = ${ledger} and id = ${consumerId}
      )
      update farebox.reversals set held_micros = held_micros + ${coveredMicros}::int8, updated_at = now()
      where id = ${reversalId}
    `);
  } else {
    const movement = { kind, amountMicros: coveredMicros, topUpId, reversalId };
    await cutLots(tx, { ledger, consumerId }, movement);
    await tx.query(sql.typeAlias('nothing')`
      update farebox.reversals set taken_micros = taken_micros + ${coveredMicros}::int8, updated_at = now()
      where id = ${reversalId}
    `);
  }
}
