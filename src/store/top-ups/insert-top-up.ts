/** Writes the row of a top-up: requested, automatic, or of a test account. */
import type { Micros } from '../../domain/money.ts';
import type { TopUpFailure } from '../../domain/top-up.ts';
import { sql, type Transaction } from '../database.ts';
import { newIdOf } from '../database-ids.ts';
import { topUpColumns, topUpRow, type NewTopUp, type TopUp } from './top-ups.ts';

interface InsertedTopUp extends Omit<NewTopUp, 'method'> {
  readonly method: TopUp['method'];
  readonly status?: 'pending' | 'completed' | 'failed';
  readonly failure?: TopUpFailure | undefined;
  readonly consentCeilingMicros?: Micros | null;
  /** Makes it an automatic top-up: the ceiling that these have. */
  readonly automaticCeilingMicros?: Micros;
}

/** One that is not pending will never have a workflow. The caller has looked for the idempotency key under a lock. */
export async function insertTopUp(
  tx: Transaction,
  {
    status = 'pending',
    failure,
    consentCeilingMicros = null,
    automaticCeilingMicros,
    ...request
  }: InsertedTopUp,
): Promise<TopUp> {
  const openedAt = status === 'pending' ? null : sql.fragment`now()`;
  const completedAt = status === 'completed' ? sql.fragment`now()` : null;
  const topUp = await tx.maybeOne(sql.type(topUpRow)`
    insert into farebox.top_ups
      (id, ledger, consumer_id, account_id, method, amount_micros, idempotency_key,
        consent_ceiling_micros, automatic, automatic_ceiling_micros, saves_card, by_link,
        status, failure_code, failure_message, opened_at, completed_at)
    values (${newIdOf(request.consumerId)}, ${request.ledger}, ${request.consumerId}, ${request.accountId},
      ${request.method}, ${request.amountMicros}, ${request.idempotencyKey ?? null},
      ${consentCeilingMicros}, ${automaticCeilingMicros !== undefined}, ${automaticCeilingMicros ?? null},
      ${request.savesCard ?? false}, ${request.byLink ?? false},
      ${status}, ${failure?.code ?? null}, ${failure?.message ?? null}, ${openedAt}, ${completedAt})
    on conflict on constraint top_ups_idempotency_unique do nothing
    returning ${topUpColumns}
  `);
  if (!topUp) throw new Error('A top-up with this key was made despite the lock');
  return topUp;
}
