/**
 * Idempotency keys of the command `farebox refund`, written in the transaction of the refund. A key names one
 * change by a command, forever: a refund, or an adjustment (../balance/adjustment-keys.ts).
 */
import { Type, type Static } from 'typebox';
import type { Micros } from '../../domain/money.ts';
import { micros, row, sql, type Transaction } from '../database.ts';
import type { CommandRequest } from '../balance/adjustment-keys.ts';
import type { ConsumerRef } from '../balance/consumers.ts';

const Known = Type.Object({
  topUpId: Type.String(),
  refundId: Type.String(),
  amountMicros: micros,
});
type Known = Static<typeof Known>;

const knownRow = row(Known);
const usedRow = row(Type.Object({ used: Type.Boolean() }));

/** The refund that has the key; `adjustment` if an adjustment has it; null: neither. */
export async function findKeyedRefund(
  tx: Transaction,
  { idempotencyKey }: CommandRequest,
): Promise<Known | 'adjustment' | null> {
  const known = await tx.maybeOne(sql.type(knownRow)`
    select top_up_id as "topUpId", reversal_id as "refundId", amount_micros as "amountMicros"
    from farebox.refund_keys where idempotency_key = ${idempotencyKey}
  `);
  if (known) return known;
  const isAdjustments = await tx.oneFirst(sql.type(usedRow)`
    select exists (
      select from farebox.adjustment_keys where idempotency_key = ${idempotencyKey}
    ) as used
  `);
  return isAdjustments ? 'adjustment' : null;
}

interface KeyedRefund extends ConsumerRef, CommandRequest {
  readonly topUpId: string;
  readonly refundId: string;
  readonly amountMicros: Micros;
}

/** The caller has locked the key. */
export async function recordKeyedRefund(
  tx: Transaction,
  { idempotencyKey, ledger, consumerId, topUpId, refundId, amountMicros }: KeyedRefund,
): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    insert into farebox.refund_keys
      (idempotency_key, ledger, consumer_id, top_up_id, reversal_id, amount_micros)
    values (${idempotencyKey}, ${ledger}, ${consumerId}, ${topUpId}, ${refundId}, ${amountMicros})
  `);
}
