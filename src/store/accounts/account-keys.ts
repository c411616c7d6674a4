/**
 * What the consumer keys of an account may be charged. Every tool server sees such a key, so its owner can close it for
 * charging, or give it a daily limit for each developer. Spend keys are not affected.
 */
import { Type } from 'typebox';
import type { Micros } from '../../domain/money.ts';
import { actAs, type Actor } from '../audit/actor.ts';
import { lockConsumer, type ConsumerRef } from '../balance/consumers.ts';
import { setDeveloperWindows } from '../budgets/developer-budgets.ts';
import { lockAccountOf } from './accounts.ts';
import {
  micros,
  nullable,
  row,
  sql,
  type Connection,
  type Database,
  type Transaction,
} from '../database.ts';

export interface AccountKeys {
  readonly charge: 'open' | 'closed';
  /** For each developer in each UTC day; null: no limit. */
  readonly developerDayMicros: Micros | null;
}

const settingsRow = row(
  Type.Object({ charge: Type.Enum(['open', 'closed']), developerDayMicros: nullable(micros) }),
);

export function readAccountKeys(
  connection: Connection,
  { consumerId }: ConsumerRef,
): Promise<AccountKeys> {
  return connection.one(sql.type(settingsRow)`
    select keys_charge as charge, developer_day_micros as "developerDayMicros"
    from farebox.accounts where consumer_id = ${consumerId}
  `);
}

/**
 * Changes only the members given. Without a new daily limit, the developers' own limits stay. Takes effect in
 * every process within a second, as changes of keys do.
 */
export async function changeAccountKeys(
  database: Database,
  consumer: ConsumerRef,
  changes: Partial<AccountKeys>,
  by?: Actor,
): Promise<AccountKeys> {
  return database.transaction(async (tx) => {
    await lockAccountOf(tx, consumer);
    // Budgets of developers are created under this lock, so none is created with the earlier limit.
    await lockConsumer(tx, consumer);
    await actAs(tx, by);
    const before = await readAccountKeys(tx, consumer);
    const settings = { ...before, ...changes };
    const { charge, developerDayMicros } = settings;
    const dayLimit = changes.developerDayMicros ?? null;
    // First, so that at the commit the budgets are looked at before the entry of this change locks the audit log.
    if (dayLimit !== null) {
      // The same limit again has no entry of its own: then the budgets that it changes have one.
      if (dayLimit !== before.developerDayMicros) await logDayLimitOnly(tx);
      await setDeveloperWindows(tx, consumer, dayLimit);
    }
    await tx.query(sql.typeAlias('nothing')`
      with changed as (
        update farebox.accounts set keys_charge = ${charge}, developer_day_micros = ${developerDayMicros}
        where consumer_id = ${consumer.consumerId} returning id
      )
      -- Not now(): with many developers, the transaction may take longer than processes look back for changes.
      update farebox.api_keys set changed_at = clock_timestamp()
      from changed where account_id = changed.id and kind = 'consumer' and revoked_at is null
    `);
    return settings;
  });
}

/** The budgets of this transaction have no entry in the audit log (migrations/functions/audit_change.sql). */
async function logDayLimitOnly(tx: Transaction): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    select from set_config('farebox.new_ceiling', 'true', true)
  `);
}
