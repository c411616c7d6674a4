/**
 * Moves what agents received and returned long ago to the schema farebox_archive. The rows stay: their hashes prove
 * receipts, and their idempotency keys are honored. Safe to repeat, and to stop between two steps.
 */
import { Type } from 'typebox';
import { uuidFloor } from '../../domain/ids.ts';
import { monthTable } from '../charges/month-partition.ts';
import { nullable, row, sql, type Database } from '../database.ts';
import { inSteps } from '../in-steps.ts';
import { allowLongStatements } from '../long-transaction.ts';

/** Each may have more than a megabyte. */
const ROWS_OF_FIRST_STEP = 20;

const oldestRow = row(Type.Object({ id: nullable(Type.String()) }));

const withContents = sql.fragment`
  farebox.invocations where payload is not null and ended_at is not null
`;

/**
 * Moves the contents of invocations that were made before `toMs`, the end of a month, and have ended. Returns
 * their table, which is named after that month; undefined if there are none.
 */
export async function archiveInvocations(
  database: Database,
  toMs: number,
): Promise<string | undefined> {
  const toId = uuidFloor(toMs);
  const fromId = await findOldest(database, toId);
  if (fromId === null) return undefined;
  const name = monthTable('invocations', toMs - 1);
  const table = sql.identifier(['farebox_archive', name]);
  await database.query(sql.typeAlias('nothing')`
    create table if not exists ${table} (id uuid primary key, payload json not null, result json)
  `);
  const rows = { from: withContents, id: sql.fragment`id` };
  for await (const step of inSteps(
    database,
    rows,
    { fromId, toId },
    'oldest',
    ROWS_OF_FIRST_STEP,
  )) {
    await database.query(sql.typeAlias('nothing')`
      with taken as (
        select id, payload, result from ${withContents} and id >= ${step.fromId} and id < ${step.toId} for update
      ), kept as (
        insert into ${table} (id, payload, result) select id, payload, result from taken
      )
      update farebox.invocations i set payload = null, result = null from taken t where i.id = t.id
    `);
  }
  return `farebox_archive.${name}`;
}

/** Reads every earlier one, whose contents are archived. */
async function findOldest(database: Database, toId: string): Promise<string | null> {
  return database.transaction(async (tx) => {
    await allowLongStatements(tx);
    return tx.maybeOneFirst(sql.type(oldestRow)`
      select id from ${withContents} and id < ${toId} order by id limit 1
    `);
  });
}
