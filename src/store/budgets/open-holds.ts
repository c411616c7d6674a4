/** The open holds of a spend key, or of all keys of a budget and below it. */
import { Type, type Static } from 'typebox';
import { uuidFloor } from '../../domain/ids.ts';
import type { ConsumerRef } from '../balance/consumers.ts';
import { row, sql, type Connection } from '../database.ts';

const OpenHold = Type.Object({
  id: Type.String(),
  developerId: Type.String(),
  developerNumber: Type.Integer(),
});

const holdRow = row(OpenHold);

/** A hold is open for at most 24 hours; clocks may differ. */
const OPEN_MS_MAX = 25 * 3_600_000;

/** Of a spend key by its id, or of the keys of a node and below it by its number. */
export type HoldsOf = { readonly keyId: string } | { readonly number: number };

/** Oldest first. Reads the consumer's holds of one day. */
export async function listOpenHolds(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
  which: HoldsOf,
  { limit, afterId }: { readonly limit: number; readonly afterId: string | undefined },
): Promise<readonly Static<typeof OpenHold>[]> {
  const ofKeys =
    'keyId' in which
      ? sql.fragment`k.id = ${which.keyId}`
      : sql.fragment`k.path @> array[${which.number}::int4]`;
  return connection.any(sql.type(holdRow)`
    select h.id, a.developer_id as "developerId", h.developer as "developerNumber"
    from farebox.holds h
    join farebox.spend_keys k on k.ledger = h.ledger and k.consumer_id = h.consumer_id and k.number = h.spend_key
    join farebox.accounts a on a.developer_number = h.developer
    where h.ledger = ${ledger} and h.consumer_id = ${consumerId} and h.state = 0 and ${ofKeys}
      and h.id > ${afterId ?? uuidFloor(Date.now() - OPEN_MS_MAX)}::uuid
    order by h.id limit ${limit}
  `);
}
