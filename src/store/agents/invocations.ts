/**
 * Invocations (legacy, specification section 4.4). One statement uses the grant and writes the invocation and its
 * notice for the workflow, so neither exists without the other. An agent's answer is recorded once; later answers
 * change nothing.
 */
import { hash, randomUUIDv7 } from 'node:crypto';
import { UniqueIntegrityConstraintViolationError } from 'slonik';
import { Type, type Static } from 'typebox';
import {
  ERROR_MESSAGE_MAX,
  INVOCATION_STATUSES,
  OPEN_INVOCATIONS_MAX,
  type InvocationError,
  type InvocationErrorCode,
} from '../../domain/invocation.ts';
import {
  durationOf,
  nullable,
  row,
  sql,
  type Connection,
  type Database,
  type Transaction,
} from '../database.ts';
import { findGrantFor, lockGrant, mayUse } from './grants.ts';

const Invocation = Type.Object({
  id: Type.String(),
  accountId: Type.String(),
  grantId: Type.String(),
  targetAgentId: Type.String(),
  capability: Type.String(),
  status: Type.Enum(INVOCATION_STATUSES),
  attempts: Type.Integer(),
  /** JSON, exactly as received. */
  resultText: nullable(Type.String()),
  errorCode: nullable(Type.Unsafe<InvocationErrorCode>(Type.String())),
  errorMessage: nullable(Type.String()),
  requestHash: Type.String(),
  resultHash: nullable(Type.String()),
  receiptKey: Type.Integer(),
  createdAt: Type.String(),
  /** When it was read, by Postgres' clock. A worker's may be wrong. */
  ageMs: Type.Integer(),
  endedAt: nullable(Type.String()),
});
/** A row of `invocations`; ids are UUIDs, hashes in hex, times ISO 8601. */
export type Invocation = Static<typeof Invocation>;

/** An invocation as the agent sees it. */
const AgentCall = Type.Object({
  endpoint: Type.String(),
  protocol: Type.String(),
  capability: Type.String(),
  payloadText: Type.String(),
  callerId: Type.String(),
});
export type AgentCall = Static<typeof AgentCall>;

export interface NewInvocation {
  readonly accountId: string;
  readonly grantId: string;
  readonly targetAgentId: string;
  readonly capability: string;
  readonly payloadText: string;
  readonly idempotencyKey: string | undefined;
  /** SHA-256 of the request, in hex. */
  readonly requestHash: string;
  readonly receiptKey: number;
  /** Whether agents of its protocol can be called. */
  readonly isCallable: boolean;
}

export type AdmitResult =
  | { readonly kind: 'admitted' | 'known'; readonly invocation: Invocation }
  /** The idempotency key was used for a different invocation. */
  | { readonly kind: 'key_reused' }
  /** No such grant, or this account may not use it. */
  | { readonly kind: 'no_grant' }
  /** The account has as many invocations in progress as it can. */
  | { readonly kind: 'too_many_open' }
  /** The grant is used up, revoked, expired or for another agent. */
  | { readonly kind: 'grant_not_active' }
  | { readonly kind: 'not_callable' };

const invocationRow = row(Invocation);
const callRow = row(AgentCall);
const fullRow = row(Type.Object({ isFull: Type.Boolean() }));

const columns = sql.fragment`
  id, account_id as "accountId", grant_id as "grantId", target_agent_id as "targetAgentId",
  capability, status, attempts, result::text as "resultText", error_code as "errorCode",
  error_message as "errorMessage", encode(request_hash, 'hex') as "requestHash",
  encode(result_hash, 'hex') as "resultHash", receipt_key as "receiptKey",
  created_at as "createdAt", (extract(epoch from clock_timestamp() - created_at) * 1000)::int8 as "ageMs",
  ended_at as "endedAt"
`;

/** How long relays wait before they start a new invocation's workflow. The request that wrote it starts it sooner. */
const IN_HAND_MS = 3_000;
/** Silent invocations in one sweep. The next sweep takes the rest. */
const SILENT_MAX = 1_000;

/** Uses the grant and writes the invocation, in status `pending`, or does neither. */
export async function admitInvocation(
  database: Database,
  request: NewInvocation,
): Promise<AdmitResult> {
  if (request.idempotencyKey === undefined) return admit(database, request);
  try {
    return await database.transaction(async (tx) => {
      // Makes the later of two requests with one key see the earlier one's row.
      await lockGrant(tx, request.grantId);
      const known = await findByKey(tx, request);
      return known ? sameRequest(known, request) : admit(tx, request);
    });
  } catch (error) {
    // A concurrent request used the key with another grant, under that grant's lock.
    if (isKeyTaken(error)) return { kind: 'key_reused' };
    throw error;
  }
}

async function admit(connection: Connection, request: NewInvocation): Promise<AdmitResult> {
  if (!request.isCallable) return { kind: 'not_callable' };
  const invocation = await insert(connection, request);
  if (invocation) return { kind: 'admitted', invocation };
  const grant = await findGrantFor(connection, request.accountId, request.grantId);
  if (!grant) return { kind: 'no_grant' };
  const isFull = await connection.oneFirst(sql.type(fullRow)`
    select not ${hasRoom(request.accountId)} as "isFull"
  `);
  return { kind: isFull ? 'too_many_open' : 'grant_not_active' };
}

/** Not exact: statements at the same time do not see each other's rows. Waiting would cost every invocation more. */
const hasRoom = (accountId: string) => sql.fragment`
  (select count(*) < ${OPEN_INVOCATIONS_MAX} from (
    select from farebox.invocations where account_id = ${accountId} and status in ('pending', 'running')
    limit ${OPEN_INVOCATIONS_MAX}
  ) open)
`;

function isKeyTaken(error: unknown): boolean {
  return (
    error instanceof UniqueIntegrityConstraintViolationError &&
    error.constraint === 'invocations_idempotency_unique'
  );
}

function sameRequest(known: Invocation, request: NewInvocation): AdmitResult {
  return known.requestHash === request.requestHash
    ? { kind: 'known', invocation: known }
    : { kind: 'key_reused' };
}

async function findByKey(tx: Transaction, request: NewInvocation): Promise<Invocation | null> {
  return tx.maybeOne(sql.type(invocationRow)`
    select ${columns} from farebox.invocations
    where account_id = ${request.accountId}
      and idempotency_key = ${request.idempotencyKey ?? null}
  `);
}

/**
 * One statement does everything, so it locks the grant's row as briefly as possible: many requests may share a session
 * grant. Returns null and changes nothing unless the grant is active, not expired, for this agent, and usable by this
 * account, and the account may open another invocation.
 */
async function insert(connection: Connection, request: NewInvocation): Promise<Invocation | null> {
  return connection.maybeOne(sql.type(invocationRow)`
    with used as (
      update farebox.grants set uses = uses + 1,
        status = case when uses + 1 = max_uses then 'used' else status end,
        ended_at = case when uses + 1 = max_uses then now() end
      where id = ${request.grantId} and target_agent_id = ${request.targetAgentId}
        and status = 'active' and expires_at > now() and ${mayUse(request.accountId)}
        and ${hasRoom(request.accountId)}
      returning id, status
    ), invoked as (
      insert into farebox.invocations (id, account_id, grant_id, target_agent_id, capability,
        payload, idempotency_key, request_hash, receipt_key)
      select ${randomUUIDv7()}::uuid, ${request.accountId}::uuid, id, ${request.targetAgentId},
        ${request.capability}, ${request.payloadText}::json, ${request.idempotencyKey ?? null},
        decode(${request.requestHash}, 'hex'), ${request.receiptKey}
      from used
      returning *
    ), noted as (
      insert into farebox.outbox (topic, subject_id, next_attempt_at)
      select 'invocation', id, now() + ${durationOf(IN_HAND_MS)} from invoked
      union all
      select 'grant', id, now() from used where status = 'used'
    )
    select ${columns} from invoked
  `);
}

export async function findInvocation(
  connection: Connection,
  id: string,
): Promise<Invocation | null> {
  return connection.maybeOne(sql.type(invocationRow)`
    select ${columns} from farebox.invocations where id = ${id}
  `);
}

/** An account sees only its own invocations. */
export async function findInvocationOf(
  connection: Connection,
  accountId: string,
  id: string,
): Promise<Invocation | null> {
  return connection.maybeOne(sql.type(invocationRow)`
    select ${columns} from farebox.invocations where id = ${id} and account_id = ${accountId}
  `);
}

/**
 * Queues notices for the invocations that are still running but silent for too long, so that the relays start their
 * workflows. Returns their number.
 */
export async function noteSilentInvocations(
  connection: Connection,
  silentForMs: number,
): Promise<number> {
  const { rowCount } = await connection.query(sql.typeAlias('nothing')`
    with silent as (
      update farebox.invocations set heard_at = now()
      where id in (
        select id from farebox.invocations i
        where status in ('pending', 'running')
          and heard_at < now() - ${durationOf(silentForMs)}
          -- One notice is enough while Temporal is down.
          and not exists (select from farebox.outbox o where o.subject_id = i.id)
        order by heard_at limit ${SILENT_MAX} for update skip locked
      )
      returning id
    )
    insert into farebox.outbox (topic, subject_id) select 'invocation', id from silent
  `);
  return rowCount;
}

/** Called when the workflow starts. Returns the current state; an ended invocation stays ended. */
export async function beginInvocation(
  connection: Connection,
  id: string,
): Promise<Invocation | null> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.invocations set status = 'running', heard_at = now()
    where id = ${id} and status in ('pending', 'running')
  `);
  return findInvocation(connection, id);
}

/** Counts an attempt and returns the call to make, or null when the invocation has ended. */
export async function beginAttempt(connection: Connection, id: string): Promise<AgentCall | null> {
  return connection.maybeOne(sql.type(callRow)`
    update farebox.invocations i set attempts = attempts + 1, heard_at = now()
    from farebox.agents a, farebox.grants g
    where i.id = ${id} and i.status = 'running' and a.id = i.target_agent_id and g.id = i.grant_id
    returning a.endpoint, a.protocol, i.capability, i.payload::text as "payloadText",
      g.caller_id as "callerId"
  `);
}

/** Uncounts an attempt that failed through no fault of the agent, and that the agent may still have received. */
export async function withdrawAttempt(connection: Connection, id: string): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.invocations set attempts = attempts - 1
    where id = ${id} and status = 'running' and attempts > 0
  `);
}

/** Records why an attempt failed, without ending the invocation. */
export async function recordFailedAttempt(
  connection: Connection,
  id: string,
  error: InvocationError,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.invocations
    set error_code = ${error.code}, error_message = ${storable(error.message)}
    where id = ${id} and status = 'running'
  `);
}

/** `resultText` is JSON. The first recorded answer stays. */
export async function recordResult(
  connection: Connection,
  id: string,
  resultText: string,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.invocations set status = 'succeeded', ended_at = now(),
      result = ${resultText}::json, result_hash = decode(${hash('sha256', resultText)}, 'hex'),
      error_code = null, error_message = null
    where id = ${id} and status = 'running'
  `);
}

/** Ends the invocation, unless it has ended. */
export async function failInvocation(
  connection: Connection,
  id: string,
  error: InvocationError,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.invocations set status = 'failed', ended_at = now(),
      error_code = ${error.code}, error_message = ${storable(error.message)}
    where id = ${id} and status in ('pending', 'running')
  `);
}

/** An agent's text may contain characters that Postgres cannot store. */
function storable(message: string): string {
  return message.replaceAll('\0', '').toWellFormed().slice(0, ERROR_MESSAGE_MAX).toWellFormed();
}
