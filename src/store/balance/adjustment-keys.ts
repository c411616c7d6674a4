/**
 * Idempotency keys of the command `farebox account adjust`, written in the transaction of the adjustment. A
 * key names one change by a command, forever: an adjustment of one consumer, or a refund
 * (../top-ups/refund-keys.ts).
 */
import { Type } from 'typebox';
import type { Micros } from '../../domain/money.ts';
import { row, sql, type Transaction } from '../database.ts';
import { lockName } from '../named-lock.ts';
import type { ConsumerRef } from './consumers.ts';

export interface CommandRequest {
  readonly idempotencyKey: string;
}

interface Asked extends ConsumerRef, CommandRequest {
  readonly amountMicros: Micros;
  readonly reason: string;
}

const sameRow = row(Type.Object({ isSame: Type.Boolean() }));

/**
 * Before any row is locked. Two tables have the keys, so only this lock makes a refund and an adjustment with
 * one key wait for each other: the second one finds what the first one did.
 */
export function lockCommandKey(tx: Transaction, { idempotencyKey }: CommandRequest): Promise<void> {
  return lockName(tx, `farebox.command_key ${idempotencyKey}`);
}

/** Whether the key was used for this adjustment or for another change; null: neither. */
export async function findAdjustment(
  tx: Transaction,
  { idempotencyKey, ledger, consumerId, amountMicros, reason }: Asked,
): Promise<'same' | 'other' | null> {
  const isSame = await tx.maybeOneFirst(sql.type(sameRow)`
    select (ledger, consumer_id, amount_micros, reason)
      = (${ledger}::int2, ${consumerId}::uuid, ${amountMicros}::int8, ${reason}::text) as "isSame"
    from farebox.adjustment_keys where idempotency_key = ${idempotencyKey}
    union all
    select false from farebox.refund_keys where idempotency_key = ${idempotencyKey}
    limit 1
  `);
  return isSame === null ? null : isSame ? 'same' : 'other';
}

/** The caller has locked the key. */
export async function recordAdjustment(
  tx: Transaction,
  { idempotencyKey, ledger, consumerId, amountMicros, reason }: Asked,
): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    insert into farebox.adjustment_keys (idempotency_key, ledger, consumer_id, amount_micros, reason)
    values (${idempotencyKey}, ${ledger}, ${consumerId}, ${amountMicros}, ${reason})
  `);
}
