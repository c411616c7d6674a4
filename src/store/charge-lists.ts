/**
 * Charges as they are read: page by page, newest first, by the two indexes that there are. What neither of
 * them knows, a developer's charges for one tool, is found by way of the hours that have earnings of it.
 */
import { Type, type Static } from 'typebox';
import { TIME_MS_MAX, uuidFloor, uuidTimeMs } from '../domain/ids.ts';
import { asMicros, type Micros } from '../domain/money.ts';
import { getCounters, type ConsumerRef } from './consumers.ts';
import { row, sql, timestampOf, type Connection } from './database.ts';
import { spentBefore } from './spent.ts';

const StoredCharge = Type.Object({
  id: Type.String(),
  consumerId: Type.String(),
  developerId: Type.String(),
  tool: Type.String(),
  amountMicros: Type.Integer(),
  receiptKey: Type.Integer(),
  /** What of it has gone back. */
  refundedMicros: Type.Integer(),
  metadata: Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()]),
});

/** A charge as it was made; its time is in its id, its receipt is derived from these. */
export type StoredCharge = Static<typeof StoredCharge>;

const chargeRow = row(StoredCharge);
const sumRow = row(Type.Object({ sum: Type.Integer() }));
const hourRow = row(Type.Object({ hour: Type.String(), charges: Type.Integer() }));

const storedCharge = sql.fragment`
  id, consumer_id as "consumerId", tool, amount_micros as "amountMicros",
  receipt_key as "receiptKey", nullif(metadata, '')::json as metadata,
  (select developer_id from farebox.accounts where developer_number = charges.developer)
    as "developerId",
  coalesce((select max(r.refunded_micros) from farebox.charge_refunds r where r.ledger = charges.ledger
    and r.consumer_id = charges.consumer_id and r.charge_id = charges.id), 0) as "refundedMicros"
`;

export interface ChargeFilter {
  /** Inclusive and exclusive bounds, as UUIDv7 floors of instants. */
  readonly fromId?: string | undefined;
  readonly toId?: string | undefined;
  readonly tool?: string | undefined;
}

export interface DeveloperChargeFilter extends ChargeFilter {
  readonly consumerId?: string | undefined;
}

export interface Page {
  readonly limit: number;
  /** Rows strictly older than this id. */
  readonly beforeId?: string | undefined;
}

/** A consumer's charges, newest first: one scan of the primary key, whatever the depth. */
export async function listConsumerCharges(
  connection: Connection,
  consumer: ConsumerRef,
  filter: ChargeFilter,
  page: Page,
): Promise<readonly StoredCharge[]> {
  return connection.any(sql.type(chargeRow)`
    select ${storedCharge} from farebox.charges
    where ledger = ${consumer.ledger} and consumer_id = ${consumer.consumerId}
      and ${matching(filter)} and ${before(page)}
    order by id desc limit ${page.limit}
  `);
}

/**
 * What a consumer's charges that match came to, less its refunds that match, of whichever charge: less than
 * nothing where more went back than was charged. In micros.
 */
export async function sumConsumerUsage(
  connection: Connection,
  consumer: ConsumerRef,
  filter: ChargeFilter,
): Promise<Micros> {
  if (filter.fromId === undefined && filter.toId === undefined && filter.tool === undefined) {
    const { spent, refunded } = await getCounters(connection, consumer);
    return asMicros(spent - refunded);
  }
  // First, so that none of them is counted before its charge is.
  const refunded = await sumMatching(connection, 'charge_refunds', consumer, filter);
  return asMicros((await sumConsumerCharges(connection, consumer, filter)) - refunded);
}

/** Of one tool's charges it is added up, else it is a few probes. */
async function sumConsumerCharges(
  connection: Connection,
  consumer: ConsumerRef,
  filter: ChargeFilter,
): Promise<number> {
  const { fromId, toId, tool } = filter;
  if (tool !== undefined) return sumMatching(connection, 'charges', consumer, filter);
  const by = (id: string) => spentBefore(connection, consumer, uuidTimeMs(id));
  const from = fromId === undefined ? 0 : await by(fromId);
  const to = toId === undefined ? (await getCounters(connection, consumer)).spent : await by(toId);
  return Math.max(to - from, 0);
}

async function sumMatching(
  connection: Connection,
  table: 'charges' | 'charge_refunds',
  { ledger, consumerId }: ConsumerRef,
  filter: ChargeFilter,
): Promise<number> {
  return connection.oneFirst(sql.type(sumRow)`
    select coalesce(sum(amount_micros), 0)::int8 as sum from ${sql.identifier(['farebox', table])}
    where ledger = ${ledger} and consumer_id = ${consumerId} and ${matching(filter)}
  `);
}

type Developer = { readonly developerNumber: number };

/** A developer's charges, newest first. */
export async function listDeveloperCharges(
  connection: Connection,
  developer: Developer,
  filter: DeveloperChargeFilter,
  page: Page,
): Promise<readonly StoredCharge[]> {
  const { tool, consumerId } = filter;
  if (tool !== undefined && consumerId === undefined) {
    return listToolCharges(connection, developer, { ...filter, tool }, page);
  }
  return connection.any(sql.type(chargeRow)`
    select ${storedCharge} from farebox.charges
    where developer = ${developer.developerNumber} and ${ofConsumer(consumerId)}
      and ${matching(filter)} and ${before(page)}
    order by id desc limit ${page.limit}
  `);
}

/** Through the primary key, which begins with the consumer's ledger. */
function ofConsumer(consumerId: string | undefined) {
  if (consumerId === undefined) return sql.fragment`true`;
  return sql.fragment`consumer_id = ${consumerId}
    and ledger = (select ledger from farebox.accounts where consumer_id = ${consumerId})`;
}

const HOUR_MS = 3_600_000;

/** Looked for in the hours that have some, so that a rare tool among millions of charges is found soon. */
async function listToolCharges(
  connection: Connection,
  developer: Developer,
  filter: ChargeFilter & { readonly tool: string },
  page: Page,
): Promise<readonly StoredCharge[]> {
  const hours = await findToolHours(connection, developer, filter, page);
  return connection.any(sql.type(chargeRow)`
    select charges.* from ${sql.unnest(
      hours.map((hourMs) => [uuidFloor(hourMs), uuidFloor(hourMs + HOUR_MS)]),
      ['uuid', 'uuid'],
    )} as hours (from_id, to_id) cross join lateral (
      select ${storedCharge} from farebox.charges
      where developer = ${developer.developerNumber} and id >= from_id and id < to_id
        and ${matching(filter)} and ${before(page)}
      order by id desc limit ${page.limit}
    ) charges
    order by id desc limit ${page.limit}
  `);
}

/** The newest hours, in milliseconds, that hold a page of a tool's charges together. */
async function findToolHours(
  connection: Connection,
  { developerNumber }: Developer,
  { tool, fromId, toId }: ChargeFilter & { readonly tool: string },
  { limit, beforeId }: Page,
): Promise<readonly number[]> {
  const fromMs = fromId === undefined ? 0 : uuidTimeMs(fromId);
  const bounds = [toId, beforeId].filter((id) => id !== undefined).map(uuidTimeMs);
  const toMs = Math.min(TIME_MS_MAX, ...bounds);
  const holding = (hour: 'begins_at' | 'hour') => sql.fragment`
    developer = ${developerNumber} and tool = ${tool} and charges > 0
    and ${sql.identifier([hour])} > ${timestampOf(fromMs - HOUR_MS)}
    and ${sql.identifier([hour])} <= ${timestampOf(toMs)}
  `;
  // An hour that is here has a charge; one more of them than asked for, as a bound may cut the newest.
  const hours = await connection.any(sql.type(hourRow)`
    select hour, sum(charges)::int8 as charges from (
      (select begins_at as hour, charges from farebox.earnings
        where span = 'hour' and ${holding('begins_at')} order by begins_at desc limit ${limit + 1})
      union all
      select hour, charges from farebox.earnings_tail where ${holding('hour')}
    ) earned group by hour order by hour desc limit ${limit + 1}
  `);
  const needed: number[] = [];
  let charges = 0;
  for (const found of hours) {
    if (charges >= limit) break;
    const hourMs = Date.parse(found.hour);
    needed.push(hourMs);
    if (hourMs + HOUR_MS <= toMs) charges += found.charges;
  }
  return needed;
}

export async function findDeveloperCharge(
  connection: Connection,
  { developerNumber }: Developer,
  id: string,
): Promise<StoredCharge | null> {
  return connection.maybeOne(sql.type(chargeRow)`
    select ${storedCharge} from farebox.charges where developer = ${developerNumber} and id = ${id}
  `);
}

function matching({ fromId, toId, tool }: ChargeFilter) {
  return sql.and([
    sql.fragment`true`,
    fromId !== undefined && sql.fragment`id >= ${fromId}::uuid`,
    toId !== undefined && sql.fragment`id < ${toId}::uuid`,
    tool !== undefined && sql.fragment`tool = ${tool}`,
  ]);
}

function before({ beforeId }: Page) {
  return beforeId === undefined ? sql.fragment`true` : sql.fragment`id < ${beforeId}::uuid`;
}
