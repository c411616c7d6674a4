/** Holds as they are read: page by page, newest first, by the same two indexes as charges. */
import { Type } from 'typebox';
import { HOLD_STATUSES, type HoldStatus } from '../../domain/hold.ts';
import type { ConsumerRef } from '../balance/consumers.ts';
import type { Page } from '../charges/list-charges.ts';
import { row, sql, type Connection } from '../database.ts';
import { holdOf, type Hold } from './hold.ts';

export interface ListedHold extends Hold {
  readonly developerId: string;
  readonly metadata: Readonly<Record<string, unknown>> | null;
}

/** Whose holds: a developer sees those that it placed, a consumer those on its balance. */
export type HoldOwner =
  | { readonly kind: 'developer'; readonly developerNumber: number }
  | ({ readonly kind: 'consumer' } & ConsumerRef);

const holdRow = row(
  Type.Object({
    id: Type.String(),
    consumerId: Type.String(),
    developerId: Type.String(),
    tool: Type.String(),
    amountMicros: Type.Integer(),
    capturedMicros: Type.Integer(),
    remainingMicros: Type.Integer(),
    state: Type.Integer(),
    placedAt: Type.String(),
    expiresAt: Type.String(),
    metadata: Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()]),
  }),
);

const isOverdue = sql.fragment`state = 0 and expires_at <= now()`;
const columns = sql.fragment`
  id, consumer_id as "consumerId", tool, amount_micros as "amountMicros",
  captured_micros as "capturedMicros",
  case when ${isOverdue} then 0 else held_micros end as "remainingMicros",
  case when ${isOverdue} then 3 else state end as state, placed_at as "placedAt",
  expires_at as "expiresAt", nullif(metadata, '')::json as metadata,
  (select developer_id from farebox.accounts where developer_number = holds.developer) as "developerId"
`;

export async function listHolds(
  connection: Connection,
  owner: HoldOwner,
  status: HoldStatus | undefined,
  { limit, beforeId }: Page,
): Promise<readonly ListedHold[]> {
  const rows = await connection.any(sql.type(holdRow)`
    select ${columns} from farebox.holds
    where ${ownedBy(owner)}
      and ${beforeId === undefined ? sql.fragment`true` : sql.fragment`id < ${beforeId}::uuid`}
      and ${status === undefined ? sql.fragment`true` : ofStatus(status)}
    order by id desc limit ${limit}
  `);
  return rows.map(holdOf) as ListedHold[];
}

export async function findHold(
  connection: Connection,
  owner: HoldOwner,
  id: string,
): Promise<ListedHold | null> {
  const found = await connection.maybeOne(sql.type(holdRow)`
    select ${columns} from farebox.holds where ${ownedBy(owner)} and id = ${id}
  `);
  return found && (holdOf(found) as ListedHold);
}

function ownedBy(owner: HoldOwner) {
  return owner.kind === 'developer'
    ? sql.fragment`developer = ${owner.developerNumber}`
    : sql.fragment`ledger = ${owner.ledger} and consumer_id = ${owner.consumerId}`;
}

function ofStatus(status: HoldStatus) {
  return sql.fragment`case when ${isOverdue} then 3 else state end = ${HOLD_STATUSES.indexOf(status)}`;
}
