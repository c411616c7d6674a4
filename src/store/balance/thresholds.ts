/**
 * The balance below which an account is told that it is low. The charge that leaves less writes the event
 * (migrations/functions/note_crossings.sql), once until a credit brings the balance back to the threshold
 * (arm_thresholds.sql).
 */
import { Type } from 'typebox';
import type { Micros } from '../../domain/money.ts';
import { micros, row, sql, type Connection } from '../database.ts';
import { balanceOf, lockConsumer, type ConsumerRef } from './consumers.ts';

const thresholdRow = row(Type.Object({ below: micros }));

/** Null if the owner set none. */
export async function findLowBalance(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
): Promise<Micros | null> {
  return connection.maybeOneFirst(sql.type(thresholdRow)`
    select below_micros as below from farebox.thresholds
    where ledger = ${ledger} and consumer_id = ${consumerId} and purpose = 'low_balance'
  `);
}

/** Null removes it. A balance that is below the threshold already makes no event: its owner sees it now. */
export async function setLowBalance(
  connection: Connection,
  consumer: ConsumerRef,
  below: Micros | null,
): Promise<void> {
  const { ledger, consumerId } = consumer;
  await connection.transaction(async (tx) => {
    await lockConsumer(tx, consumer);
    if (below === null) {
      await tx.query(sql.typeAlias('nothing')`
        delete from farebox.thresholds
        where ledger = ${ledger} and consumer_id = ${consumerId} and purpose = 'low_balance'
      `);
      return;
    }
    await tx.query(sql.typeAlias('nothing')`
      insert into farebox.thresholds (ledger, consumer_id, purpose, below_micros, crossed_at)
      select ledger, id, 'low_balance', ${below}::int8,
        case when ${balanceOf('consumers')} < ${below}::int8 then now() end
      from farebox.consumers where ledger = ${ledger} and id = ${consumerId}
      on conflict (ledger, consumer_id, purpose) do update
        set below_micros = excluded.below_micros, crossed_at = excluded.crossed_at
    `);
  });
}
