/**
 * Releases the open holds of keys that have ended, each as its developer would. One that is captured meanwhile is paid:
 * whichever locks the hold first wins.
 */
import { Type, type Static } from 'typebox';
import { uuidFloor } from '../../domain/ids.ts';
import type { ConsumerRef } from '../balance/consumers.ts';
import { row, sql, type Connection, type Database, type Fragment } from '../database.ts';
import { isOpen, openHoldFloor } from '../holds/hold.ts';
import type { HoldEntry } from '../holds/hold-entry.ts';
import { postEntries } from '../holds/post-hold-entries.ts';

const OpenHold = Type.Object({
  id: Type.String(),
  developerId: Type.String(),
  developerNumber: Type.Integer(),
});
type OpenHold = Static<typeof OpenHold>;

const holdRow = row(OpenHold);

/** In one transaction, which holds up the consumer's charges for some milliseconds. */
const AT_ONCE = 200;
/** A release makes no charge to sign, and has no idempotency key to look up. */
const NO_RECEIPT = 0;

/**
 * The holds of one spend key, by its id, of all keys of a node and of the nodes below, by its number, of all spend keys
 * that anybody can hold, or of the account's consumer keys: a hold does not say which of those placed it.
 */
export type HoldsOf =
  | { readonly keyId: string }
  | { readonly number: number }
  | 'all_keys'
  | 'account_keys';

export async function releaseOpenHolds(
  database: Database,
  consumer: ConsumerRef,
  which: HoldsOf,
): Promise<void> {
  let afterId: string | undefined;
  for (;;) {
    const open = await listOpenHolds(database, consumer, which, afterId);
    if (open.length > 0) await release(database, open);
    const last = open.at(-1);
    if (!last || open.length < AT_ONCE) return;
    afterId = last.id;
  }
}

/** The released money repays the consumer's debts first. */
async function release(database: Database, open: readonly OpenHold[]): Promise<void> {
  const entries = open.map(({ id: holdId, developerId, developerNumber }): HoldEntry => ({
    kind: 'release',
    developerId,
    developerNumber,
    holdId,
    idempotencyHash: null,
    fingerprint: null,
  }));
  await postEntries(database, entries, NO_RECEIPT, { fromId: uuidFloor(0), toId: uuidFloor(0) });
}

/** Oldest first, without leases, which end by themselves. Reads the consumer's holds of one day. */
async function listOpenHolds(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
  which: HoldsOf,
  afterId: string | undefined,
): Promise<readonly OpenHold[]> {
  const ofKeys = conditionOf(which);
  return connection.any(sql.type(holdRow)`
    select h.id, a.developer_id as "developerId", h.developer as "developerNumber"
    from farebox.holds h
    left join farebox.spend_keys k on k.ledger = h.ledger and k.consumer_id = h.consumer_id and k.number = h.spend_key
    join farebox.accounts a on a.developer_number = h.developer
    where h.ledger = ${ledger} and h.consumer_id = ${consumerId} and ${isOpen('h')} and h.tool <> '' and ${ofKeys}
      and h.id > ${afterId === undefined ? openHoldFloor() : sql.fragment`${afterId}::uuid`}
    order by h.id limit ${AT_ONCE}
  `);
}

function conditionOf(which: HoldsOf): Fragment {
  if (which === 'all_keys') return sql.fragment`k.number is not null and k.developer is null`;
  // With a limit for each developer, they charge by the number of a key that nobody holds.
  if (which === 'account_keys') return sql.fragment`(h.spend_key = 0 or k.developer is not null)`;
  if ('keyId' in which) return sql.fragment`k.id = ${which.keyId}`;
  return sql.fragment`k.path @> array[${which.number}::int4]`;
}
