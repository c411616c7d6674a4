/** Refused requests to charge spend keys, counted by hour, key and code, for the owners of the keys. */
import { Type, type Static } from 'typebox';
import { isKeyOf, type SeenNode } from '../budgets/usage.ts';
import { nullable, row, sql, type Connection } from '../database.ts';

export interface CountedKeyRefusal {
  /** SHA-256 of the key, as hex. It may be the hash of anything: what is not a spend key is left out. */
  readonly hash: string;
  /** The start of the hour. */
  readonly hour: string;
  readonly code: string;
  readonly count: number;
  readonly lastAt: string;
}

/**
 * The most rows of one account in an hour. An agent that makes keys for itself could otherwise fill the
 * table. Processes that write at the same moment do not see each other's rows, and may exceed it by those.
 */
const ROWS_OF_HOUR_MAX = 1_000;

/**
 * In one order, so that two processes never wait for each other's rows. No two of them have the same key,
 * hour and code.
 */
export async function addKeyRefusals(
  connection: Connection,
  refusals: readonly CountedKeyRefusal[],
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    with refused as materialized (
      select k.ledger, k.consumer_id, r.hour, k.number as spend_key, r.code, r.count, r.last_at
      from ${sql.unnest(
        refusals.map(({ hash, hour, code, count, lastAt }) => [hash, hour, code, count, lastAt]),
        ['text', 'timestamptz', 'text', 'int8', 'timestamptz'],
      )} as r (hash, hour, code, count, last_at)
      cross join lateral (
        select ledger, consumer_id, number from farebox.spend_keys where hash = decode(r.hash, 'hex') offset 0
      ) k
    ), hours as materialized (
      select *, (select count(*) from farebox.key_refusals k
        where (k.ledger, k.consumer_id, k.hour) = (h.ledger, h.consumer_id, h.hour)) as stored
      from (select distinct ledger, consumer_id, hour from refused) h
    ), ranked as (
      select *, row_number() over (partition by ledger, consumer_id, hour, is_stored order by spend_key, code) as place
      from (
        select *, exists (select from farebox.key_refusals k
          where (k.ledger, k.consumer_id, k.hour, k.spend_key, k.code)
            = (r.ledger, r.consumer_id, r.hour, r.spend_key, r.code)) as is_stored
        from refused r
      ) r
    )
    insert into farebox.key_refusals (ledger, consumer_id, hour, spend_key, code, count, last_at)
    select ledger, consumer_id, hour, spend_key, code, count, last_at
    from ranked join hours using (ledger, consumer_id, hour)
    where is_stored or stored + place <= ${ROWS_OF_HOUR_MAX}
    order by ledger, consumer_id, hour, spend_key, code
    on conflict (ledger, consumer_id, hour, spend_key, code) do update set
      count = key_refusals.count + excluded.count,
      last_at = greatest(key_refusals.last_at, excluded.last_at)
  `);
}

const KeyRefusals = Type.Object({
  keyId: Type.String(),
  keyName: nullable(Type.String()),
  code: Type.String(),
  count: Type.Integer(),
  lastAt: Type.String(),
});
export type KeyRefusals = Static<typeof KeyRefusals>;

const keyRefusalsRow = row(KeyRefusals);

/**
 * Lists refusals by key and code, for the keys that a reader of the node sees, the most frequent first. Hours
 * count as in `listRefusals`.
 */
export async function listKeyRefusals(
  connection: Connection,
  node: SeenNode,
  { hours, limit }: { readonly hours: number; readonly limit: number },
): Promise<readonly KeyRefusals[]> {
  const { ledger, consumerId } = node;
  return connection.any(sql.type(keyRefusalsRow)`
    select k.id as "keyId", k.name as "keyName", r.code, r.count, r.last_at as "lastAt"
    from (
      select spend_key, code, sum(count)::int8 as count, max(last_at) as last_at
      from farebox.key_refusals
      where ledger = ${ledger} and consumer_id = ${consumerId}
        and hour > now() - make_interval(hours => ${hours + 1})
      group by spend_key, code
    ) r
    -- By the order of the primary key: without statistics, PostgreSQL would take an index of all keys of the account.
    cross join lateral (
      select * from farebox.spend_keys
      where (ledger, consumer_id, number) >= (${ledger}, ${consumerId}, r.spend_key)
      order by ledger, consumer_id, number limit 1
    ) k
    where k.ledger = ${ledger} and k.consumer_id = ${consumerId} and k.number = r.spend_key and ${isKeyOf(node)}
    order by r.count desc, k.id, r.code limit ${limit}
  `);
}
