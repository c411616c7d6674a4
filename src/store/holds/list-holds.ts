/**
 * Lists holds page by page, newest first, through the same two indexes as charges, in steps: few of millions
 * may have the wanted status, and most may be leases, which are holds without a tool.
 */
import { Type, type Static } from 'typebox';
import { HOLD_STATUSES, type HoldStatus } from '../../domain/hold.ts';
import type { ConsumerRef } from '../balance/consumers.ts';
import { micros, row, sql, storedMetadata, type Connection } from '../database.ts';
import { FIRST_ID, LAST_ID, pageInSteps } from '../in-steps.ts';
import { lightPage, type OfLightPage, type Page } from '../page.ts';
import { holdOf, isOverdue, openHoldFloor, stateNow, type Hold } from './hold.ts';

export interface StoredHold extends Hold {
  readonly developerId: string;
  readonly metadata: Static<typeof storedMetadata>;
}

/** The owner of the holds: a developer sees those that it placed, a consumer those on its balance. */
export type HoldOwner =
  | { readonly kind: 'developer'; readonly developerNumber: number }
  | ({ readonly kind: 'consumer' } & ConsumerRef);

const HoldRow = Type.Object({
  id: Type.String(),
  consumerId: Type.String(),
  developerId: Type.String(),
  tool: Type.String(),
  amountMicros: micros,
  capturedMicros: micros,
  remainingMicros: micros,
  state: Type.Integer(),
  placedAt: Type.String(),
  expiresAt: Type.String(),
  metadata: storedMetadata,
});
const holdRow = row(HoldRow);
const listedRow = row(Type.Object({ ...HoldRow.properties, hasNext: Type.Boolean() }));

const columns = sql.fragment`
  id, consumer_id as "consumerId", tool, amount_micros as "amountMicros",
  captured_micros as "capturedMicros",
  case when ${isOverdue('holds')} then 0 else held_micros end as "remainingMicros",
  ${stateNow('holds')} as state, placed_at as "placedAt",
  expires_at as "expiresAt", nullif(metadata, '')::json as metadata,
  (select developer_id from farebox.accounts where developer_number = holds.developer) as "developerId"
`;

export async function listHolds(
  connection: Connection,
  owner: HoldOwner,
  status: HoldStatus | undefined,
  { limit, beforeId }: Page,
): Promise<readonly (StoredHold & OfLightPage)[]> {
  const bytes = sql.fragment`300 + octet_length(metadata)`;
  const from = sql.fragment`farebox.holds where ${ownedBy(owner)} and ${youngEnough(status)}`;
  const range = { fromId: FIRST_ID, toId: beforeId ?? LAST_ID };
  const rows = await pageInSteps(
    connection,
    { from, id: sql.fragment`id` },
    range,
    limit,
    (step, left) => {
      const holds = sql.fragment`
        select * from ${from} and id >= ${step.fromId} and id < ${step.toId}
          and tool <> '' and ${ofStatus(status)}
        order by id desc limit ${left}
      `;
      return connection.any(sql.type(listedRow)`
        select ${columns}, has_next as "hasNext" from (${lightPage(holds, sql.fragment`id desc`, bytes)}) holds
        order by id desc
      `);
    },
  );
  return rows.map(({ hasNext, ...found }) => ({ ...holdOf(found), hasNext }));
}

export async function findHold(
  connection: Connection,
  owner: HoldOwner,
  id: string,
): Promise<StoredHold | null> {
  const found = await connection.maybeOne(sql.type(holdRow)`
    select ${columns} from farebox.holds where ${ownedBy(owner)} and tool <> '' and id = ${id}
  `);
  return found && holdOf(found);
}

function ownedBy(owner: HoldOwner) {
  return owner.kind === 'developer'
    ? sql.fragment`developer = ${owner.developerNumber}`
    : sql.fragment`ledger = ${owner.ledger} and consumer_id = ${owner.consumerId}`;
}

/** Otherwise all holds ever placed would be read, to see that none of them is open. */
function youngEnough(status: HoldStatus | undefined) {
  return status === 'open' ? sql.fragment`id > ${openHoldFloor()}` : sql.fragment`true`;
}

function ofStatus(status: HoldStatus | undefined) {
  if (status === undefined) return sql.fragment`true`;
  return sql.fragment`${stateNow('holds')} = ${HOLD_STATUSES.indexOf(status)}`;
}
