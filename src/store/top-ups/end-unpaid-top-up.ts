/** Ends a top-up that was not paid, if its row has the evidence (payment-evidence.ts). Others stay unchanged. */
import { Type } from 'typebox';
import type { AutoTopUpState } from '../../domain/top-up.ts';
import { lockConsumer } from '../balance/consumers.ts';
import { type Database, row, sql } from '../database.ts';
import { findAutoTopUpState, recordAutoTopUpResult, type Ending } from './auto-top-ups.ts';

const ownerRow = row(
  Type.Object({
    automatic: Type.Boolean(),
    ledger: Type.Integer(),
    consumerId: Type.String(),
  }),
);

/**
 * Fails a top-up whose row has this failure as evidence; others stay unchanged. Returns the state of automatic
 * top-ups, if this was one, even when it is repeated.
 */
export async function failTopUp(
  database: Database,
  id: string,
  ending: Omit<Extract<Ending, { status: 'failed' }>, 'status'>,
): Promise<AutoTopUpState | null> {
  return endUnpaid(database, id, { status: 'failed', ...ending });
}

/** Expires a top-up whose row has evidence that it can no longer be paid; others stay unchanged. */
export async function expireTopUp(database: Database, id: string): Promise<void> {
  await endUnpaid(database, id, { status: 'expired' });
}

async function endUnpaid(
  database: Database,
  id: string,
  ending: Exclude<Ending, { status: 'completed' }>,
): Promise<AutoTopUpState | null> {
  const failure = 'failure' in ending ? ending.failure : undefined;
  return database.transaction(async (tx) => {
    const { automatic, ...consumer } = await tx.one(sql.type(ownerRow)`
      select automatic, ledger, consumer_id as "consumerId" from farebox.top_ups where id = ${id}
    `);
    if (automatic) await lockConsumer(tx, consumer);
    const { rowCount } = await tx.query(sql.typeAlias('nothing')`
      update farebox.top_ups set status = ${ending.status}, updated_at = now(),
        failure_code = ${failure?.code ?? null}, failure_message = ${failure?.message ?? null}
      where id = ${id} and status = 'pending' and seen_verdict = ${ending.status}
        and seen_failure_code is not distinct from ${failure?.code ?? null}
    `);
    if (!automatic) return null;
    return rowCount === 1
      ? recordAutoTopUpResult(tx, consumer, ending)
      : findAutoTopUpState(tx, consumer);
  });
}
