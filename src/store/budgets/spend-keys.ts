/** Spend keys: created at a node, shown once, rolled and revoked. Stored as SHA-256, as other keys are. */
import { Type, type Static } from 'typebox';
import { SPEND_KEYS_MAX } from '../../domain/budget.ts';
import { IS_ACTIVE } from '../accounts/api-keys.ts';
import { actAs } from '../audit/actor.ts';
import { lockConsumer, type ConsumerRef } from '../balance/consumers.ts';
import {
  idRow,
  nullable,
  row,
  sql,
  type Connection,
  type Database,
  type Transaction,
} from '../database.ts';
import { newIdOf } from '../database-ids.ts';
import { isBefore, type Page } from '../page.ts';
import type { Budget } from './budget.ts';
import { getBudgetOfNumber, lastNumberFor, type Maker, type TreeView } from './budgets.ts';
import { hashOrNull, type RepeatedRequest } from '../repeated-request.ts';

const SpendKey = Type.Object({
  id: Type.String(),
  /** The number of its node. */
  budget: Type.Integer(),
  name: nullable(Type.String()),
  lastFour: Type.String(),
  createdAt: Type.String(),
  expiresAt: nullable(Type.String()),
  revokedAt: nullable(Type.String()),
  lastUsedAt: nullable(Type.String()),
});
export type SpendKey = Static<typeof SpendKey>;

const keyRow = row(SpendKey);
const rolledRow = row(
  Type.Object({
    budget: Type.Integer(),
    name: nullable(Type.String()),
    /** The one that its owner gave it, even if an earlier roll has brought it forward. */
    expiresAt: nullable(Type.String()),
  }),
);
const numberRow = row(Type.Object({ number: Type.Integer() }));
const knownRow = row(
  Type.Object({
    id: Type.String(),
    budget: Type.Integer(),
    name: nullable(Type.String()),
    hash: Type.String(),
    isSame: Type.Boolean(),
  }),
);

const columns = sql.fragment`
  id, budget, name, last_four as "lastFour", created_at as "createdAt", expires_at as "expiresAt",
  revoked_at as "revokedAt", last_used_at as "lastUsedAt"
`;

export interface NewSpendKey {
  /** SHA-256 of the key, as hex. */
  readonly hash: string;
  readonly lastFour: string;
  readonly accountId: string;
  readonly name: string | null;
  readonly expiresAt: string | null;
}

export type MadeSpendKey =
  | {
      readonly kind: 'made';
      readonly id: string;
      readonly budget: Budget;
      readonly name: string | null;
    }
  | KnownSpendKey
  | { readonly kind: 'closed' | 'too_many' };

export type KnownSpendKey =
  /** An earlier request with the same idempotency key made it. The hash is SHA-256 of the key, as hex. */
  | {
      readonly kind: 'known';
      readonly id: string;
      readonly budget: Budget;
      readonly name: string | null;
      readonly hash: string;
    }
  /** The idempotency key was used for another request. */
  | { readonly kind: 'key_reused' };

/** At a node of the consumer's tree. It works at once in every process: none remembers that a key does not exist. */
export async function makeSpendKey(
  database: Database,
  consumer: Maker,
  budget: number,
  key: NewSpendKey,
  retry?: RepeatedRequest,
): Promise<MadeSpendKey> {
  return database.transaction(async (tx) => {
    await lockConsumer(tx, consumer);
    await actAs(tx, consumer.by);
    const known = await findKnownSpendKey(tx, consumer, retry);
    return known ?? insertKey(tx, consumer, budget, key, retry);
  });
}

/** The result of an earlier request with the same idempotency key; null when there was none. */
export async function findKnownSpendKey(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
  retry: RepeatedRequest | undefined,
): Promise<KnownSpendKey | null> {
  if (!retry) return null;
  const found = await connection.maybeOne(sql.type(knownRow)`
    select id, budget, name, encode(hash, 'hex') as hash,
      request_hash = ${hashOrNull(retry.requestHash)} as "isSame"
    from farebox.spend_keys
    where ledger = ${ledger} and consumer_id = ${consumerId}
      and idempotency_hash = ${hashOrNull(retry.keyHash)}
  `);
  if (!found) return null;
  if (!found.isSame) return { kind: 'key_reused' };
  const { id, name, hash } = found;
  const budget = await getBudgetOfNumber(connection, { ledger, consumerId }, found.budget);
  return { kind: 'known', id, name, hash, budget };
}

/** Newest first, including those that have ended. */
export async function listSpendKeys(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
  budget: number,
  page: Page,
): Promise<readonly SpendKey[]> {
  return connection.any(sql.type(keyRow)`
    select ${columns} from farebox.spend_keys
    where ledger = ${ledger} and consumer_id = ${consumerId} and budget = ${budget} and developer is null
      and ${isBefore(page)}
    order by id desc limit ${page.limit}
  `);
}

/**
 * Immediately. Does not change a key that was revoked before. Null when the view has no such key. A key never ends a
 * key of its own node. With `endsHolds`, it places no hold after this, not even in a process that has not heard of it.
 */
export async function revokeSpendKey(
  database: Database,
  view: TreeView,
  id: string,
  { endsHolds }: { readonly endsHolds: boolean },
): Promise<SpendKey | null> {
  return database.transaction(async (tx) => {
    // Who places a hold sees the revocation under this lock.
    if (endsHolds) await lockConsumer(tx, view);
    await actAs(tx, view.by);
    const revoked = await tx.maybeOne(sql.type(keyRow)`
      update farebox.spend_keys set revoked_at = now(), changed_at = now()
      where ${seen(view, id)} and revoked_at is null
      returning ${columns}
    `);
    return (
      revoked ??
      tx.maybeOne(sql.type(keyRow)`
        select ${columns} from farebox.spend_keys where ${seen(view, id)}
      `)
    );
  });
}

export type RolledSpendKey = MadeSpendKey | { readonly kind: 'unknown_key' };

/**
 * A new key at the same node, with the same expiry; the old one ends at once, or when its overlap is over. What the old
 * one has asked its owner goes to the new one, unless the old one still waits for it.
 */
export async function rollSpendKey(
  database: Database,
  view: TreeView,
  id: string,
  overlapSeconds: number,
  key: Pick<NewSpendKey, 'hash' | 'lastFour' | 'accountId'>,
  retry?: RepeatedRequest,
): Promise<RolledSpendKey> {
  return database.transaction(async (tx) => {
    await lockConsumer(tx, view);
    await actAs(tx, view.by);
    const known = await findKnownSpendKey(tx, view, retry);
    if (known) return known;
    // Locked: a revocation does not wait for the consumer, and a key that was revoked meanwhile has no successor.
    const old = await tx.maybeOne(sql.type(rolledRow)`
      select budget, name, nullif(coalesce(own_expires_at, expires_at), 'infinity') as "expiresAt"
      from farebox.spend_keys where ${seen(view, id)} and ${IS_ACTIVE} for no key update
    `);
    if (!old) return { kind: 'unknown_key' };
    const copied = { ...key, name: old.name, expiresAt: old.expiresAt };
    const made = await insertKey(tx, view, old.budget, copied, retry);
    if (made.kind === 'made') {
      await tx.query(sql.typeAlias('nothing')`
        update farebox.spend_keys set changed_at = now(), ${
          overlapSeconds === 0
            ? sql.fragment`revoked_at = now()`
            : sql.fragment`
                own_expires_at = coalesce(own_expires_at, expires_at, 'infinity'),
                expires_at = least(expires_at, now() + make_interval(secs => ${overlapSeconds}))
              `
        }
        where id = ${id}
      `);
      if (overlapSeconds === 0) await passApprovalsOn(tx, view, id, made.id);
    }
    return made;
  });
}

function numberOf(id: string) {
  return sql.fragment`(select number from farebox.spend_keys where id = ${id})`;
}

/** From a key that has ended to its successor: those that are pending or allow one call. The caller has locked the consumer. */
async function passApprovalsOn(
  tx: Transaction,
  { ledger, consumerId }: ConsumerRef,
  from: string,
  to: string,
): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    update farebox.approvals set spend_key = ${numberOf(to)}
    where ledger = ${ledger} and consumer_id = ${consumerId} and spend_key = ${numberOf(from)}
      and (status = 'pending' or (decision = 'once' and used_by is null))
  `);
}

/** The caller has locked the consumer. `developer` is the number of the developer that alone charges it. */
export async function insertKey(
  tx: Transaction,
  consumer: Maker,
  budgetNumber: number,
  { hash, lastFour, accountId, name, expiresAt }: NewSpendKey,
  retry?: RepeatedRequest,
  developer?: number,
): Promise<MadeSpendKey> {
  const { ledger, consumerId } = consumer;
  const budget = await getBudgetOfNumber(tx, consumer, budgetNumber);
  if (budget.status !== 'active') return { kind: 'closed' };
  const number = await nextKeyNumber(tx, consumer);
  if (number === null) return { kind: 'too_many' };
  const id = await tx.oneFirst(sql.type(idRow)`
    insert into farebox.spend_keys (id, hash, account_id, ledger, consumer_id, number, budget, path, name,
      last_four, expires_at, developer, idempotency_hash, request_hash)
    values (${newIdOf(consumerId)}, decode(${hash}, 'hex'), ${accountId}, ${ledger}, ${consumerId}, ${number},
      ${budgetNumber}, ${sql.array(budget.path, 'int4')}, ${name}, ${lastFour}, ${expiresAt},
      ${developer ?? null}, ${hashOrNull(retry?.keyHash)}, ${hashOrNull(retry?.requestHash)})
    returning id
  `);
  return { kind: 'made', id, budget, name };
}

/** Null: the account has so many keys that this maker may make no more. The caller has locked the consumer. */
export async function nextKeyNumber(tx: Transaction, maker: Maker): Promise<number | null> {
  const { ledger, consumerId } = maker;
  const number = await tx.oneFirst(sql.type(numberRow)`
    select coalesce(max(number), 0) + 1 as number from farebox.spend_keys
    where ledger = ${ledger} and consumer_id = ${consumerId}
  `);
  return number > lastNumberFor(maker, SPEND_KEYS_MAX) ? null : number;
}

function seen({ ledger, consumerId, root }: TreeView, id: string) {
  const part =
    root === null
      ? sql.fragment`true`
      : sql.fragment`${root.withBelow} and path @> array[${root.number}::int4] and budget <> ${root.number}`;
  return sql.fragment`
    id = ${id} and ledger = ${ledger} and consumer_id = ${consumerId} and developer is null and ${part}
  `;
}
