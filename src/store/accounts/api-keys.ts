/** API keys: stored as SHA-256, shown once when created. Hashes travel as hex text. */
import { hash, randomBytes, randomUUIDv7 } from 'node:crypto';
import { Type, type Static } from 'typebox';
import { composeKey, type KeyKind } from '../../domain/api-keys.ts';
import { modeOf, type InLedger, type Mode } from '../../domain/mode.ts';
import { nullable, row, sql, type Connection, type Fragment } from '../database.ts';
import { hashOrNull, type RepeatedRequest } from '../repeated-request.ts';

const KEY_KINDS = ['consumer', 'developer', 'legacy'] as const satisfies readonly KeyKind[];
export const OWNER_KINDS = [...KEY_KINDS, 'spend'] as const;

const KeyOwner = Type.Object({
  keyId: Type.String(),
  hash: Type.String(),
  /** `spend`: looks like a consumer key, and may do what its budget allows and nothing else. */
  kind: Type.Enum([...OWNER_KINDS]),
  accountId: Type.String(),
  ledger: Type.Integer(),
  consumerId: Type.String(),
  developerId: Type.String(),
  developerNumber: Type.Integer(),
  expiresAt: nullable(Type.String()),
  /** For a spend key: its number, and the numbers of the nodes from the root of its budget's tree to its own. */
  spend: Type.Union([
    Type.Object({ number: Type.Integer(), path: Type.Array(Type.Integer()) }),
    Type.Null(),
  ]),
  /**
   * For a consumer key of the account: whether it cannot be charged, only within a budget for each developer, or by
   * every developer but those whose budgets were closed.
   */
  guard: nullable(Type.Enum(['closed', 'by_developer', 'except_blocked'])),
});

/** An active key and its owner. */
export interface KeyOwner extends Static<typeof KeyOwner> {
  /** For a key in memory: the round in which its use was last noted (src/charging/last-used-recorder.ts). */
  notedIn?: number;
}

const ownerRow = row(KeyOwner);

/**
 * The keys of these hashes with their accounts. Spend keys have a table of their own. Each hash probes the indexes by
 * itself (`lateral`, and `offset 0`), because PostgreSQL would otherwise read whole tables for a few dozen keys.
 */
const owned = (hashes: readonly string[], condition: Fragment) => sql.fragment`
  unnest(${sql.array(hashes, 'text')}) as h (hash)
  cross join lateral (
    select id, hash, kind, account_id, expires_at, null::json as spend
    from farebox.api_keys where hash = decode(h.hash, 'hex') and ${condition}
    union all
    select id, hash, 'spend', account_id, expires_at, json_build_object('number', number, 'path', path)
    from farebox.spend_keys where hash = decode(h.hash, 'hex') and ${condition}
  ) k
  cross join lateral (select * from farebox.accounts where id = k.account_id offset 0) a
`;
const keyOwner = sql.fragment`
  k.id as "keyId", h.hash, k.kind, a.id as "accountId", a.ledger,
  a.consumer_id as "consumerId", a.developer_id as "developerId",
  a.developer_number as "developerNumber", k.expires_at as "expiresAt", k.spend,
  case when k.kind = 'consumer' then case when a.keys_charge = 'closed' then 'closed'
    when a.developer_day_micros is not null then 'by_developer'
    when a.blocks_developers then 'except_blocked' end end as guard
`;
/** A condition on a key: it is neither revoked nor expired. */
export const IS_ACTIVE = sql.fragment`revoked_at is null and (expires_at is null or expires_at > now())`;

/** The owners of the active keys among these hashes, which differ. Other hashes have no row. */
export async function findKeyOwners(
  connection: Connection,
  hashes: readonly string[],
): Promise<readonly KeyOwner[]> {
  return connection.any(sql.type(ownerRow)`select ${keyOwner} from ${owned(hashes, IS_ACTIVE)}`);
}

/** The owner of an active or former key. Never use it to authenticate. */
export function findFormerKeyOwner(connection: Connection, hash: string): Promise<KeyOwner | null> {
  return connection.maybeOne(
    sql.type(ownerRow)`select ${keyOwner} from ${owned([hash], sql.fragment`true`)}`,
  );
}

/** SHA-256 as hex; a key has 190 random bits, so a slow hash would add nothing. */
export function hashOfKey(key: string): string {
  return hash('sha256', key);
}

interface Stored {
  readonly hash: string;
  readonly lastFour: string;
}

/** The columns that represent a plaintext key in the database. */
export function storedOf(key: string): Stored {
  return { hash: hashOfKey(key), lastFour: key.slice(-4) };
}

interface NewKey extends Stored {
  readonly kind: KeyKind;
  readonly accountId: string;
  /** What its owner calls it. */
  readonly name?: string | null;
  /** The request that makes the key, to recognize its repetition. */
  readonly retry?: RepeatedRequest | undefined;
}

/** Returns the ids of the new keys, in order. */
export async function insertKeys(
  connection: Connection,
  keys: readonly NewKey[],
): Promise<readonly string[]> {
  const ids = keys.map(() => randomUUIDv7());
  await connection.query(sql.typeAlias('nothing')`
    insert into farebox.api_keys (id, hash, kind, account_id, last_four, name, idempotency_hash, request_hash)
    select id, decode(hash, 'hex'), kind, account_id, last_four, name, decode(key_hash, 'hex'),
      decode(request_hash, 'hex')
    from ${sql.unnest(
      keys.map(({ hash, kind, accountId, lastFour, name, retry }, index) => [
        ids[index] ?? '',
        hash,
        kind,
        accountId,
        lastFour,
        name ?? null,
        retry?.keyHash ?? null,
        retry?.requestHash ?? null,
      ]),
      ['uuid', 'text', 'text', 'uuid', 'text', 'text', 'text', 'text'],
    )} as k (id, hash, kind, account_id, last_four, name, key_hash, request_hash)
  `);
  return ids;
}

/**
 * Stores a new random key of one account, a test key if it is a test account. `key` is its plain text, which
 * is not stored.
 */
export async function createKey(
  connection: Connection,
  prefix: string,
  kind: KeyKind,
  owner: InLedger & { readonly accountId: string },
  name: string | null = null,
): Promise<{ readonly id: string; readonly key: string }> {
  const { accountId } = owner;
  const key = newKey(prefix, kind, modeOf(owner));
  const [id = ''] = await insertKeys(connection, [newKeyRow(key, kind, accountId, name)]);
  return { id, key };
}

/** A new random key, in plain text. */
export function newKey(prefix: string, kind: KeyKind, mode: Mode): string {
  return composeKey(prefix, kind, randomBytes(64), mode);
}

export function newKeyRow(
  key: string,
  kind: KeyKind,
  accountId: string,
  name: string | null = null,
): NewKey {
  return { ...storedOf(key), kind, accountId, name };
}

const KnownKey = Type.Object({
  id: Type.String(),
  hash: Type.String(),
  kind: Type.Enum(KEY_KINDS),
  /** The ledger of its account, which says whether it is a test key. */
  ledger: Type.Integer(),
  name: nullable(Type.String()),
  /** False: the idempotency key was used for another request. */
  isSame: Type.Boolean(),
});
export type KnownKey = Static<typeof KnownKey>;

const knownRow = row(KnownKey);

/** The key that an earlier request with the same idempotency key made; null when there was none. */
export async function findKnownKey(
  connection: Connection,
  retry: RepeatedRequest | undefined,
): Promise<KnownKey | null> {
  if (!retry) return null;
  return connection.maybeOne(sql.type(knownRow)`
    select k.id, encode(k.hash, 'hex') as hash, k.kind, a.ledger, k.name,
      k.request_hash = ${hashOrNull(retry.requestHash)} as "isSame"
    from farebox.api_keys k join farebox.accounts a on a.id = k.account_id
    where k.idempotency_hash = ${hashOrNull(retry.keyHash)}
  `);
}

const StoredKey = Type.Object({
  id: Type.String(),
  kind: Type.Enum(KEY_KINDS),
  accountId: Type.String(),
  /** The ledger of its account, which says whether it is a test key. */
  ledger: Type.Integer(),
  name: nullable(Type.String()),
  lastFour: Type.String(),
  createdAt: Type.String(),
  expiresAt: nullable(Type.String()),
  revokedAt: nullable(Type.String()),
  lastUsedAt: nullable(Type.String()),
});

export type StoredKey = Static<typeof StoredKey>;

const keyRow = row(StoredKey);

const storedKey = sql.fragment`
  id, kind, account_id as "accountId",
  (select ledger from farebox.accounts a where a.id = api_keys.account_id) as ledger, name, last_four as "lastFour", created_at as "createdAt",
  expires_at as "expiresAt", revoked_at as "revokedAt", last_used_at as "lastUsedAt"
`;

const accountAndTest = (accountId: string) => sql.fragment`(
  select id from farebox.accounts where ${accountId} in (id, live_account_id)
)`;

/** All keys of a live account, oldest first, including test keys and revoked ones. */
export async function listKeys(
  connection: Connection,
  accountId: string,
): Promise<readonly StoredKey[]> {
  return connection.any(sql.type(keyRow)`
    select ${storedKey} from farebox.api_keys where account_id in ${accountAndTest(accountId)} order by id
  `);
}

const KeyCounts = Type.Object({ ever: Type.Integer(), active: Type.Integer() });
const countsRow = row(KeyCounts);

/** The numbers of keys that `listKeys` would return, and of the active ones among them. */
export async function countKeys(
  connection: Connection,
  accountId: string,
): Promise<Static<typeof KeyCounts>> {
  return connection.one(sql.type(countsRow)`
    select count(*) as ever, count(*) filter (where ${IS_ACTIVE}) as active
    from farebox.api_keys where account_id in ${accountAndTest(accountId)}
  `);
}

/** A key by its id: of any account, or only of this live account and its test account. */
export interface WhichKey {
  readonly id: string;
  readonly accountId?: string;
}

const matches = ({ id, accountId }: WhichKey, condition: Fragment | false = false) =>
  sql.and([
    sql.fragment`id = ${id}`,
    accountId !== undefined && sql.fragment`account_id in ${accountAndTest(accountId)}`,
    condition,
  ]);

/** Active or not. */
export async function findKey(connection: Connection, which: WhichKey): Promise<StoredKey | null> {
  return connection.maybeOne(sql.type(keyRow)`
    select ${storedKey} from farebox.api_keys where ${matches(which)}
  `);
}

/** Revokes a key immediately. Does not change a key that was revoked before. Null when no key matches. */
export async function revokeKey(
  connection: Connection,
  which: WhichKey,
): Promise<StoredKey | null> {
  const revoked = await revokeIf(connection, which, sql.fragment`revoked_at is null`);
  return revoked ?? findKey(connection, which);
}

/** The same for a key that another one replaces. Null when no active key matches. */
export async function revokeActiveKey(
  connection: Connection,
  which: WhichKey,
): Promise<StoredKey | null> {
  return revokeIf(connection, which, IS_ACTIVE);
}

async function revokeIf(
  connection: Connection,
  which: WhichKey,
  condition: Fragment,
): Promise<StoredKey | null> {
  return connection.maybeOne(sql.type(keyRow)`
    update farebox.api_keys set revoked_at = now(), changed_at = now()
    where ${matches(which, condition)} returning ${storedKey}
  `);
}

/** Makes a key expire in `overlapSeconds`, never later than it already does. Null when no active key matches. */
export async function expireKey(
  connection: Connection,
  which: WhichKey,
  overlapSeconds: number,
): Promise<StoredKey | null> {
  return connection.maybeOne(sql.type(keyRow)`
    update farebox.api_keys
    set expires_at = least(expires_at, now() + make_interval(secs => ${overlapSeconds})),
      changed_at = now()
    where ${matches(which, IS_ACTIVE)}
    returning ${storedKey}
  `);
}

/**
 * Records that keys were used. Writes each key's time at most once a minute, and skips keys that another process is
 * writing or changing, so it never waits for a lock.
 */
export async function touchKeys(connection: Connection, ids: readonly string[]): Promise<void> {
  const dueOf = (table: Fragment) => sql.fragment`
    select id from ${table} where id = any(${sql.array(ids, 'uuid')})
      and (last_used_at is null or last_used_at < now() - interval '1 minute')
    for no key update skip locked
  `;
  await connection.query(sql.typeAlias('nothing')`
    with spend_keys as (
      update farebox.spend_keys set last_used_at = now()
      where id in (${dueOf(sql.fragment`farebox.spend_keys`)})
    )
    update farebox.api_keys set last_used_at = now()
    where id in (${dueOf(sql.fragment`farebox.api_keys`)})
  `);
}
