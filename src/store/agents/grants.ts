/**
 * Grants (legacy, specification section 4.4). A condition on the row decides uses and revocations, so concurrent
 * requests never use a grant more often than it allows.
 */
import { randomUUIDv7 } from 'node:crypto';
import { Type, type Static } from 'typebox';
import {
  ACTIVE_GRANTS_MAX,
  GRANT_STATUSES,
  GRANT_TYPES,
  type GrantType,
} from '../../domain/grant.ts';
import {
  durationOf,
  type Connection,
  countRow,
  type Database,
  nullable,
  row,
  sql,
  type Transaction,
} from '../database.ts';
import { lockName } from '../named-lock.ts';
import { postNotice } from '../outbox.ts';

const Grant = Type.Object({
  id: Type.String(),
  accountId: Type.String(),
  callerId: Type.String(),
  targetAgentId: Type.String(),
  type: Type.Enum(GRANT_TYPES),
  status: Type.Enum(GRANT_STATUSES),
  uses: Type.Integer(),
  maxUses: nullable(Type.Integer()),
  requestHash: Type.String(),
  createdAt: Type.String(),
  expiresAt: Type.String(),
  /** By Postgres's clock. Negative once the grant has expired. */
  expiresInMs: Type.Integer(),
});
export type Grant = Static<typeof Grant>;

export interface NewGrant {
  readonly accountId: string;
  readonly callerId: string;
  readonly targetAgentId: string;
  readonly type: GrantType;
  /** ISO 8601. Defaults to one day from now. */
  readonly expiresAt: string | undefined;
  /** 1 for a `one_time` grant, null for a `session`. */
  readonly maxUses: number | null;
  readonly idempotencyKey: string | undefined;
  /** SHA-256 of the request, in hex. */
  readonly requestHash: string;
}

export type CreateGrantResult =
  | { readonly kind: 'created' | 'known'; readonly grant: Grant }
  /** The idempotency key was used for a different grant. */
  | { readonly kind: 'key_reused' }
  /** The account has as many active grants as it can. */
  | { readonly kind: 'too_many' };

export type RevokeGrantResult =
  /** Revoked by this call or an earlier one. */
  | { readonly kind: 'revoked'; readonly grant: Grant }
  /** It was already used up or expired. */
  | { readonly kind: 'ended'; readonly grant: Grant };

const grantRow = row(Grant);

const columns = sql.fragment`
  id, account_id as "accountId", caller_id as "callerId", target_agent_id as "targetAgentId", type,
  case when status = 'active' and expires_at <= now() then 'expired' else status end as status,
  uses, max_uses as "maxUses", encode(request_hash, 'hex') as "requestHash",
  created_at as "createdAt", expires_at as "expiresAt",
  ceil(extract(epoch from expires_at - now()) * 1000)::int8 as "expiresInMs"
`;

/**
 * The account that created it, or that owns the agent named as its caller. An agent that was registered after the grant
 * was created is another one: its owner chose the id of a caller to whom the grant was not given. A condition on a row
 * of `grants`.
 */
export const mayUse = (accountId: string) => sql.fragment`
  (account_id = ${accountId} or exists (
    select from farebox.agents a
    where a.id = caller_id and a.account_id = ${accountId} and a.created_at <= grants.created_at
  ))
`;

/** The earlier result for the request's idempotency key, or null when the key is new. */
export async function findKnownGrant(
  connection: Connection,
  { accountId, idempotencyKey, requestHash }: NewGrant,
): Promise<CreateGrantResult | null> {
  if (idempotencyKey === undefined) return null;
  const grant = await connection.maybeOne(sql.type(grantRow)`
    select ${columns} from farebox.grants
    where account_id = ${accountId} and idempotency_key = ${idempotencyKey}
  `);
  if (!grant) return null;
  return grant.requestHash === requestHash ? { kind: 'known', grant } : { kind: 'key_reused' };
}

/** The target agent must exist. The ceiling is exact: new grants of one account wait for each other. */
export async function createGrant(
  database: Database,
  request: NewGrant,
): Promise<CreateGrantResult> {
  return database.transaction(async (tx) => {
    await lockName(tx, `farebox.grants ${request.accountId}`);
    const known = await findKnownGrant(tx, request);
    if (known) return known;
    if (await hasTooMany(tx, request.accountId)) return { kind: 'too_many' };
    const grant = await insert(tx, request);
    await postNotice(tx, 'grant', grant.id);
    return { kind: 'created', grant };
  });
}

async function hasTooMany(tx: Transaction, accountId: string): Promise<boolean> {
  const active = await tx.oneFirst(sql.type(countRow)`
    select count(*) as count from farebox.grants
    where account_id = ${accountId} and status = 'active' and expires_at > now()
  `);
  return active >= ACTIVE_GRANTS_MAX;
}

async function insert(tx: Transaction, request: NewGrant): Promise<Grant> {
  return tx.one(sql.type(grantRow)`
    insert into farebox.grants (id, account_id, caller_id, target_agent_id, type, max_uses,
      expires_at, idempotency_key, request_hash)
    values (${randomUUIDv7()}, ${request.accountId}, ${request.callerId}, ${request.targetAgentId},
      ${request.type}, ${request.maxUses},
      coalesce(${request.expiresAt ?? null}::timestamptz, now() + interval '24 hours'),
      ${request.idempotencyKey ?? null}, decode(${request.requestHash}, 'hex'))
    returning ${columns}
  `);
}

/** The grant, for accounts that may use it; null for all others. */
export async function findGrantFor(
  connection: Connection,
  accountId: string,
  id: string,
): Promise<Grant | null> {
  return connection.maybeOne(sql.type(grantRow)`
    select ${columns} from farebox.grants where id = ${id} and ${mayUse(accountId)}
  `);
}

/** Null when the account has not created this grant. */
export async function revokeGrant(
  database: Database,
  accountId: string,
  id: string,
): Promise<RevokeGrantResult | null> {
  return database.transaction(async (tx) => {
    const revoked = await tx.maybeOne(sql.type(grantRow)`
      update farebox.grants set status = 'revoked', ended_at = now()
      where id = ${id} and account_id = ${accountId} and status = 'active' and expires_at > now()
      returning ${columns}
    `);
    if (revoked) {
      await postNotice(tx, 'grant', id);
      return { kind: 'revoked', grant: revoked };
    }
    const grant = await tx.maybeOne(sql.type(grantRow)`
      select ${columns} from farebox.grants where id = ${id} and account_id = ${accountId}
    `);
    return grant && { kind: grant.status === 'revoked' ? 'revoked' : 'ended', grant };
  });
}

/** Locks the grant: other users of it wait until the transaction ends. */
export async function lockGrant(tx: Transaction, id: string): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    select from farebox.grants where id = ${id} for update
  `);
}

export async function findGrant(connection: Connection, id: string): Promise<Grant | null> {
  return connection.maybeOne(sql.type(grantRow)`
    select ${columns} from farebox.grants where id = ${id}
  `);
}

/** Marks the grant as expired when it is overdue, and returns its current state. */
export async function expireGrant(connection: Connection, id: string): Promise<Grant | null> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.grants set status = 'expired', ended_at = now()
    where id = ${id} and status = 'active' and expires_at <= now()
  `);
  return findGrant(connection, id);
}

/** Does the same for grants that expired at least `overdueByMs` ago. Returns their number. */
export async function expireOverdueGrants(
  connection: Connection,
  overdueByMs: number,
): Promise<number> {
  const { rowCount } = await connection.query(sql.typeAlias('nothing')`
    update farebox.grants set status = 'expired', ended_at = now()
    where status = 'active' and expires_at < now() - ${durationOf(overdueByMs)}
  `);
  return rowCount;
}
