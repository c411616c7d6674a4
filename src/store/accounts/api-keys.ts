/** Keys: stored as SHA-256, shown once when made. Hashes travel as hex text. */
import { randomUUIDv7 } from 'node:crypto';
import { Type, type Static } from 'typebox';
import type { KeyKind } from '../../domain/api-keys.ts';
import { row, sql, type Connection } from '../database.ts';

const Nullable = (schema: ReturnType<typeof Type.String>) => Type.Union([schema, Type.Null()]);

const KeyOwner = Type.Object({
  keyId: Type.String(),
  hash: Type.String(),
  kind: Type.Union([Type.Literal('consumer'), Type.Literal('developer'), Type.Literal('legacy')]),
  accountId: Type.String(),
  ledger: Type.Integer(),
  consumerId: Type.String(),
  developerId: Type.String(),
  developerNumber: Type.Integer(),
  expiresAt: Nullable(Type.String()),
});

/** A key that is in force, and whose it is. */
export type KeyOwner = Static<typeof KeyOwner>;

const ownerRow = row(KeyOwner);
const hashRow = row(Type.Object({ hash: Type.String() }));

const keyOwner = sql.fragment`
  k.id as "keyId", encode(k.hash, 'hex') as hash, k.kind, a.id as "accountId", a.ledger,
  a.consumer_id as "consumerId", a.developer_id as "developerId",
  a.developer_number as "developerNumber", k.expires_at as "expiresAt"
`;

/** The owners of those hashes that are in force now; of the others there is no row. */
export async function findKeyOwners(
  connection: Connection,
  hashes: readonly string[],
): Promise<readonly KeyOwner[]> {
  return connection.any(sql.type(ownerRow)`
    select ${keyOwner}
    from farebox.api_keys k join farebox.accounts a on a.id = k.account_id
    where k.hash = any (select decode(h, 'hex') from unnest(${sql.array(hashes, 'text')}) h)
      and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
  `);
}

/** Whose key it is or was, whether it is still active or not: never to let anybody in. */
export function findFormerKeyOwner(connection: Connection, hash: string): Promise<KeyOwner | null> {
  return connection.maybeOne(sql.type(ownerRow)`
    select ${keyOwner}
    from farebox.api_keys k join farebox.accounts a on a.id = k.account_id
    where k.hash = decode(${hash}, 'hex')
  `);
}

/** Hashes of keys that changed in the last half minute: what a cache of owners has to forget. */
export async function findChangedKeyHashes(connection: Connection): Promise<readonly string[]> {
  return connection.anyFirst(sql.type(hashRow)`
    select encode(hash, 'hex') as hash from farebox.api_keys
    where changed_at > now() - interval '30 seconds'
  `);
}

export interface NewKey {
  readonly hash: string;
  readonly kind: KeyKind;
  readonly accountId: string;
  readonly lastFour: string;
}

/** Returns the ids of the new keys, in order. */
export async function insertKeys(
  connection: Connection,
  keys: readonly NewKey[],
): Promise<readonly string[]> {
  const ids = keys.map(() => randomUUIDv7());
  await connection.query(sql.typeAlias('nothing')`
    insert into farebox.api_keys (id, hash, kind, account_id, last_four)
    select id, decode(hash, 'hex'), kind, account_id, last_four
    from ${sql.unnest(
      keys.map((key, index) => [ids[index] ?? '', key.hash, key.kind, key.accountId, key.lastFour]),
      ['uuid', 'text', 'text', 'uuid', 'text'],
    )} as k (id, hash, kind, account_id, last_four)
  `);
  return ids;
}

const StoredKey = Type.Object({
  id: Type.String(),
  kind: KeyOwner.properties.kind,
  accountId: Type.String(),
  lastFour: Type.String(),
  createdAt: Type.String(),
  expiresAt: Nullable(Type.String()),
  revokedAt: Nullable(Type.String()),
  lastUsedAt: Nullable(Type.String()),
});

export type StoredKey = Static<typeof StoredKey>;

const keyRow = row(StoredKey);

const storedKey = sql.fragment`
  id, kind, account_id as "accountId", last_four as "lastFour", created_at as "createdAt",
  expires_at as "expiresAt", revoked_at as "revokedAt", last_used_at as "lastUsedAt"
`;

/** All keys of an account, oldest first, revoked ones too. */
export async function listKeys(
  connection: Connection,
  accountId: string,
): Promise<readonly StoredKey[]> {
  return connection.any(sql.type(keyRow)`
    select ${storedKey} from farebox.api_keys where account_id = ${accountId} order by id
  `);
}

/** Ends a key now. Returns it, or null when there is none that is in force. */
export async function revokeKey(connection: Connection, id: string): Promise<StoredKey | null> {
  return connection.maybeOne(sql.type(keyRow)`
    update farebox.api_keys set revoked_at = now(), changed_at = now()
    where id = ${id} and revoked_at is null and (expires_at is null or expires_at > now())
    returning ${storedKey}
  `);
}

/** Lets a key end after `overlapSeconds`, never later than it would have. Returns null as `revokeKey`. */
export async function expireKey(
  connection: Connection,
  id: string,
  overlapSeconds: number,
): Promise<StoredKey | null> {
  return connection.maybeOne(sql.type(keyRow)`
    update farebox.api_keys
    set expires_at = least(expires_at, now() + make_interval(secs => ${overlapSeconds})),
      changed_at = now()
    where id = ${id} and revoked_at is null and (expires_at is null or expires_at > now())
    returning ${storedKey}
  `);
}

/** Notes that keys were used; a key's time is written at most once a minute. */
export async function touchKeys(connection: Connection, ids: readonly string[]): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.api_keys set last_used_at = now()
    where id = any(${sql.array(ids, 'uuid')})
      and (last_used_at is null or last_used_at < now() - interval '1 minute')
  `);
}
