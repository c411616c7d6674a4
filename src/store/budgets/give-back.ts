/** What a refund gives back to the budgets that its charge counted at. */
import { Type } from 'typebox';
import type { ConsumerRef } from '../balance/consumers.ts';
import { micros, row, sql, type Transaction } from '../database.ts';

/** A charge, and the part of it that is refunded, on the axis of what the consumer spent. */
export interface SpentPart extends ConsumerRef {
  readonly id: string;
  readonly amountMicros: number;
  /** Where the charge ends. */
  readonly spentMicros: number;
  /** The number of its spend key; 0 for a key of the account. */
  readonly spendKey: number;
  /** The hold that it captured. */
  readonly holdId: string | null;
  readonly fromMicros: number;
  readonly toMicros: number;
}

const holdRow = row(Type.Object({ placedAt: Type.String(), excessMicros: micros }));

/**
 * To the total limits, and to the windows that counted the charge and are not over. A window counted what was held
 * when the hold was placed, and only the excess when it was captured: the last part of the charge. The caller has
 * locked the consumer.
 */
export async function giveBackToBudgets(tx: Transaction, part: SpentPart): Promise<void> {
  if (part.spendKey === 0) return;
  const { ledger, consumerId, spendKey, fromMicros, toMicros } = part;
  const begins = part.spentMicros - part.amountMicros;
  const hold = part.holdId && (await findHold(tx, part, part.holdId));
  const heldEnds = hold ? part.spentMicros - hold.excessMicros : begins;
  const heldMicros = Math.max(Math.min(toMicros, heldEnds) - fromMicros, 0);
  const parts = [
    [heldMicros, hold ? hold.placedAt : null, null],
    [toMicros - fromMicros - heldMicros, null, begins],
  ] as const;
  await tx.query(sql.typeAlias('nothing')`
    select farebox.give_back_to_budgets(
      array_agg(${ledger}::int2), array_agg(${consumerId}::uuid), array_agg(${spendKey}::int4),
      array_agg(p.micros), array_agg(p.held_at), array_agg(p.charged_from))
    from ${sql.unnest(parts, ['int8', 'timestamptz', 'int8'])} as p (micros, held_at, charged_from)
  `);
}

async function findHold(tx: Transaction, { ledger, consumerId, id }: SpentPart, holdId: string) {
  return tx.one(sql.type(holdRow)`
    select placed_at as "placedAt",
      case when overflow_charge = ${id} then captured_micros - amount_micros else 0 end as "excessMicros"
    from farebox.holds where ledger = ${ledger} and consumer_id = ${consumerId} and id = ${holdId}
  `);
}
