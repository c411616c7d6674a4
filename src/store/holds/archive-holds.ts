/**
 * Archives holds and leases of the months before an archived one. Those of the archived month itself stay: a
 * hold lives for a day, so a charge of the next month may have captured it, and refunds, lists and doctor
 * read the hold of a charge. Only ended holds: nothing reserves money in the archive.
 */
import { Type } from 'typebox';
import { uuidFloor } from '../../domain/ids.ts';
import { monthTable } from '../charges/month-partition.ts';
import { row, sql, type Transaction } from '../database.ts';
import { isOpen } from './hold.ts';

const nameRow = row(Type.Object({ name: Type.String() }));
const foundRow = row(Type.Object({ isFound: Type.Boolean() }));

export type UnsettledHolds = 'holds_rest' | 'open_holds';

/** The partitions of all months that ended by `beforeMs`. */
export async function listOldPartitions(
  tx: Transaction,
  beforeMs: number,
): Promise<readonly string[]> {
  return tx.anyFirst(sql.type(nameRow)`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'farebox.holds'::regclass and c.relname ~ '^holds_[0-9]{4}_[0-9]{2}$'
      and c.relname < ${monthTable('holds', beforeMs)}
    order by 1
  `);
}

/** Why the holds of these partitions, which end at `beforeMs`, cannot leave the ledger. Reads all of them. */
export async function findUnsettled(
  tx: Transaction,
  partitions: readonly string[],
  beforeMs: number,
): Promise<UnsettledHolds | undefined> {
  const isMisplaced = await tx.oneFirst(sql.type(foundRow)`
    select exists (select from farebox.holds_rest where id < ${uuidFloor(beforeMs)}) as "isFound"
  `);
  if (isMisplaced) return 'holds_rest';
  for (const name of partitions) {
    const isFound = await tx.oneFirst(sql.type(foundRow)`
      select exists (select from ${sql.identifier(['farebox', name])} h where ${isOpen('h')}) as "isFound"
    `);
    if (isFound) return 'open_holds';
  }
  return undefined;
}

/**
 * Moves the leases from before `beforeMs` to a table of their own, whose name it returns, and deletes the
 * idempotency keys of extensions and renewals of these holds, which nobody looks up any more.
 */
export async function archiveLeases(tx: Transaction, beforeMs: number): Promise<readonly string[]> {
  const beforeId = uuidFloor(beforeMs);
  await tx.query(sql.typeAlias('nothing')`
    delete from farebox.hold_extensions where hold_id < ${beforeId}
  `);
  const isFound = await tx.oneFirst(sql.type(foundRow)`
    select exists (select from farebox.leases where id < ${beforeId}) as "isFound"
  `);
  if (!isFound) return [];
  const name = monthTable('leases', beforeMs - 1);
  await tx.query(sql.typeAlias('nothing')`
    create table ${sql.identifier(['farebox_archive', name])} as
    select * from farebox.leases where id < ${sql.literalValue(beforeId)}
  `);
  await tx.query(sql.typeAlias('nothing')`delete from farebox.leases where id < ${beforeId}`);
  return [name];
}
