/**
 * Operators, and what they did in the console: who changed which balance, and why. A row is
 * written in the transaction of the change, under the lock of its key, so that a repeated request finds it
 * and changes nothing.
 */
import { randomUUIDv7 } from 'node:crypto';
import { Type, type Static } from 'typebox';
import type { Micros } from '../../domain/money.ts';
import { micros, nullable, row, sql, type Connection, type Transaction } from '../database.ts';
import { lockName } from '../named-lock.ts';

export interface OperatorRequest {
  readonly operatorAccountId: string;
  /** The account whose balance changes. */
  readonly accountId: string;
  readonly idempotencyKey: string;
}

export interface KeyReused {
  /** The idempotency key was used for another change. */
  readonly kind: 'key_reused';
}
export const KEY_REUSED: KeyReused = { kind: 'key_reused' };

interface Asked extends OperatorRequest {
  readonly kind: 'adjustment' | 'refund';
  readonly topUpId?: string;
  readonly reason: string;
  /** Null: any amount. */
  readonly amountMicros: Micros | null;
}

const Action = Type.Object({
  id: Type.String(),
  operatorEmail: Type.String(),
  kind: Type.Enum(['adjustment', 'refund']),
  amountMicros: micros,
  topUpId: nullable(Type.String()),
  reason: Type.String(),
  /** Why the refund failed. */
  failure: nullable(Type.String()),
  createdAt: Type.String(),
});
export type OperatorAction = Static<typeof Action>;

const actionRow = row(Action);
const sameRow = row(Type.Object({ isSame: Type.Boolean() }));

const columns = sql.fragment`
  a.id, o.email as "operatorEmail", a.kind, a.amount_micros as "amountMicros",
  a.top_up_id as "topUpId", a.reason, a.created_at as "createdAt", (
    select coalesce(r.failure_message, 'no reason given') from farebox.reversals r
    where r.id = a.id and r.status = 'failed'
  ) as failure
`;

/** Grants or withdraws the rights of an operator, from the next request on. */
export async function setOperator(
  connection: Connection,
  accountId: string,
  isOperator: boolean,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.accounts
    set operator_since = case when ${isOperator} then coalesce(operator_since, now()) end
    where id = ${accountId}
  `);
}

/** Before any row is locked: the same key for two accounts at once makes one change, and the other is refused. */
export function lockActionKey(
  tx: Transaction,
  { operatorAccountId, idempotencyKey }: OperatorRequest,
): Promise<void> {
  return lockName(tx, `farebox.operator_action ${operatorAccountId} ${idempotencyKey}`);
}

/** Whether the key was used for this change or for another one; null: neither. */
export async function findRepeated(
  tx: Transaction,
  { operatorAccountId, accountId, idempotencyKey, kind, topUpId, reason, amountMicros }: Asked,
): Promise<'same' | 'other' | null> {
  const isSame = await tx.maybeOneFirst(sql.type(sameRow)`
    select account_id = ${accountId} and kind = ${kind} and reason = ${reason}
      and top_up_id is not distinct from ${topUpId ?? null}::uuid
      and amount_micros = coalesce(${amountMicros}::int8, amount_micros) as "isSame"
    from farebox.operator_actions
    where operator_account_id = ${operatorAccountId} and idempotency_key = ${idempotencyKey}
  `);
  return isSame === null ? null : isSame ? 'same' : 'other';
}

export async function recordAction(
  tx: Transaction,
  action: Asked & { readonly id?: string; readonly amountMicros: Micros },
): Promise<void> {
  const { id = randomUUIDv7(), operatorAccountId, accountId, kind, topUpId } = action;
  await tx.query(sql.typeAlias('nothing')`
    insert into farebox.operator_actions
      (id, operator_account_id, account_id, kind, amount_micros, top_up_id, reason, idempotency_key)
    values (${id}, ${operatorAccountId}, ${accountId}, ${kind}, ${action.amountMicros},
      ${topUpId ?? null}, ${action.reason}, ${action.idempotencyKey})
  `);
}

export async function getAction(
  connection: Connection,
  { operatorAccountId, idempotencyKey }: OperatorRequest,
): Promise<OperatorAction> {
  return connection.one(sql.type(actionRow)`
    select ${columns} from farebox.operator_actions a
    join farebox.accounts o on o.id = a.operator_account_id
    where a.operator_account_id = ${operatorAccountId} and a.idempotency_key = ${idempotencyKey}
  `);
}

/** The latest actions on an account, newest first. */
export async function listActionsOn(
  connection: Connection,
  accountId: string,
  limit: number,
): Promise<readonly OperatorAction[]> {
  return connection.any(sql.type(actionRow)`
    select ${columns} from farebox.operator_actions a
    join farebox.accounts o on o.id = a.operator_account_id
    where a.account_id = ${accountId} order by a.id desc limit ${limit}
  `);
}
