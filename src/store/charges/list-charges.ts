/**
 * Lists charges page by page, newest first, through two indexes. Neither index covers a developer's charges for one
 * tool; those are found through the minutes marked in the tool's earnings.
 */
import { Type, type Static } from 'typebox';
import { HOUR_MS, MINUTE_MS } from '../../domain/durations.ts';
import { TIME_MS_MAX, uuidFloor, uuidTimeMs } from '../../domain/ids.ts';
import { TEST_LEDGER_MIN } from '../../domain/mode.ts';
import { asMicros, type Micros } from '../../domain/money.ts';
import { getCounters, type ConsumerRef } from '../balance/consumers.ts';
import {
  micros,
  nullable,
  row,
  sql,
  storedMetadata,
  timestampOf,
  type Connection,
  type DeveloperRef,
  type Fragment,
} from '../database.ts';
import { chargesOf, FIRST_ID, LAST_ID, pageInSteps, type IdsBetween } from '../in-steps.ts';
import { isBefore, type Page } from '../page.ts';
import { spentBefore } from '../balance/spent.ts';
import { sumArchivedCharges } from './archived.ts';
import { cardVersionOf, holdIdOf, isOfHold } from './charge-origin.ts';
import type { ClosedCharges } from './closed-charges.ts';

const StoredCharge = Type.Object({
  id: Type.String(),
  consumerId: Type.String(),
  developerId: Type.String(),
  tool: Type.String(),
  amountMicros: micros,
  cardVersion: Type.Integer(),
  receiptKey: Type.Integer(),
  isTest: Type.Boolean(),
  /** The refunded part. */
  refundedMicros: micros,
  /** The hold from which it was captured; null for a plain charge. */
  holdId: nullable(Type.String()),
  /** Whether that hold is a lease. */
  isLeased: Type.Boolean(),
  metadata: storedMetadata,
});

/** A stored charge. Its id contains its time, and its receipt is derived from these fields. */
export type StoredCharge = Static<typeof StoredCharge>;

const chargeRow = row(StoredCharge);
const ledgerRow = row(Type.Object({ ledger: Type.Integer() }));
const sumRow = row(Type.Object({ sumMicros: micros }));
const stretchRow = row(Type.Object({ from: Type.String(), to: Type.String() }));

const storedCharge = sql.fragment`
  id, consumer_id as "consumerId", tool, amount_micros as "amountMicros",
  ${cardVersionOf('charges')} as "cardVersion", receipt_key as "receiptKey", ledger >= ${TEST_LEDGER_MIN}::int2 as "isTest",
  ${holdIdOf('charges')} as "holdId",
  ${isOfHold('charges')} and exists (
    select from farebox.leases l where l.id = ${holdIdOf('charges')}
  ) as "isLeased", nullif(metadata, '')::json as metadata,
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

/** A consumer's charges, newest first: one scan of the primary key for any page, in steps when it is for one tool. */
export async function listConsumerCharges(
  connection: Connection,
  consumer: ConsumerRef,
  filter: ChargeFilter,
  page: Page,
): Promise<readonly StoredCharge[]> {
  const { tool } = filter;
  if (tool === undefined) return listOwn(connection, consumer, sql.fragment`true`, filter, page);
  return listInSteps(connection, consumer, sql.fragment`tool = ${tool}`, filter, page);
}

/** A consumer's charges for which the condition holds. */
async function listOwn(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
  condition: Fragment,
  { fromId, toId }: ChargeFilter,
  page: Page,
): Promise<readonly StoredCharge[]> {
  return connection.any(sql.type(chargeRow)`
    select ${storedCharge} from farebox.charges
    where ledger = ${ledger} and consumer_id = ${consumerId} and ${condition}
      and ${matching({ fromId, toId })} and ${isBefore(page)}
    order by id desc limit ${page.limit}
  `);
}

/** The same when few charges may match, of millions. */
function listInSteps(
  connection: Connection,
  consumer: ConsumerRef,
  condition: Fragment,
  filter: ChargeFilter,
  page: Page,
): Promise<readonly StoredCharge[]> {
  const range = idsBetween(filter, page);
  return pageInSteps(connection, chargesOf(consumer), range, page.limit, (step, limit) =>
    listOwn(connection, consumer, condition, step, { limit }),
  );
}

/**
 * The sum of a consumer's matching charges less its matching refunds (of any charge), in micros. Negative when more was
 * refunded than charged.
 */
export async function sumConsumerUsage(
  connection: Connection,
  closedCharges: ClosedCharges,
  consumer: ConsumerRef,
  filter: ChargeFilter,
): Promise<Micros> {
  if (filter.fromId === undefined && filter.toId === undefined && filter.tool === undefined) {
    const { spentMicros, refundedMicros } = await getCounters(connection, consumer);
    return asMicros(spentMicros - refundedMicros);
  }
  // Read first, so that no refund is counted without its charge.
  const refunded = await sumRefunds(connection, consumer, filter);
  const charged = await sumConsumerCharges(connection, closedCharges, consumer, filter);
  return asMicros(charged - refunded);
}

/** For one tool, this adds up its charges; otherwise it takes a few index probes. */
async function sumConsumerCharges(
  connection: Connection,
  closedCharges: ClosedCharges,
  consumer: ConsumerRef,
  { fromId, toId, tool }: ChargeFilter,
): Promise<number> {
  if (tool !== undefined) {
    const archived =
      fromId === undefined ? await sumArchivedCharges(connection, consumer, { tool }) : 0;
    const between = {
      ...(fromId !== undefined && { fromMs: uuidTimeMs(fromId) }),
      ...(toId !== undefined && { toMs: uuidTimeMs(toId) }),
    };
    return archived + (await closedCharges.sumOfTool(connection, consumer, tool, between));
  }
  const by = (id: string) => spentBefore(connection, consumer, uuidTimeMs(id));
  const from = fromId === undefined ? 0 : await by(fromId);
  const to =
    toId === undefined ? (await getCounters(connection, consumer)).spentMicros : await by(toId);
  return Math.max(to - from, 0);
}

async function sumRefunds(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
  filter: ChargeFilter,
): Promise<Micros> {
  return connection.oneFirst(sql.type(sumRow)`
    select coalesce(sum(amount_micros), 0)::int8 as "sumMicros" from farebox.charge_refunds
    where ledger = ${ledger} and consumer_id = ${consumerId} and ${matching(filter)}
  `);
}

/** A developer's charges, newest first. */
export async function listDeveloperCharges(
  connection: Connection,
  developer: DeveloperRef,
  filter: DeveloperChargeFilter,
  page: Page,
): Promise<readonly StoredCharge[]> {
  const { tool, consumerId } = filter;
  if (consumerId !== undefined) {
    return listChargesToConsumer(connection, developer, { ...filter, consumerId }, page);
  }
  if (tool !== undefined) return listToolCharges(connection, developer, { ...filter, tool }, page);
  return listBetween(connection, developer, [idsBetween(filter, page)], null, page.limit);
}

/** By the primary key: the developer's charges may be few among the consumer's. */
async function listChargesToConsumer(
  connection: Connection,
  { developerNumber }: DeveloperRef,
  filter: ChargeFilter & { readonly consumerId: string },
  page: Page,
): Promise<readonly StoredCharge[]> {
  const { consumerId, tool } = filter;
  const ledger = await connection.maybeOneFirst(sql.type(ledgerRow)`
    select ledger from farebox.accounts where consumer_id = ${consumerId}
  `);
  if (ledger === null) return [];
  // `=` would let a planner that expects few charges read all of the developer's by their index, and sort them.
  const condition = sql.fragment`
    developer is not distinct from ${developerNumber} and ${matching({ tool })}
  `;
  return listInSteps(connection, { ledger, consumerId }, condition, filter, page);
}

function idsBetween({ fromId, toId }: ChargeFilter, { beforeId }: Page): IdsBetween {
  const endId = earlierOf(toId ?? LAST_ID, beforeId ?? LAST_ID);
  return { fromId: fromId ?? FIRST_ID, toId: earlierOf(endId, LAST_ID) };
}

// Ids are written in lower case, so they can be compared as text.
const earlierOf = (a: string, b: string) => (a < b ? a : b);
const laterOf = (a: string, b: string) => (a < b ? b : a);

/** Lists the charges of all tools when `tool` is null. */
async function listBetween(
  connection: Connection,
  { developerNumber }: DeveloperRef,
  stretches: readonly IdsBetween[],
  tool: string | null,
  limit: number,
): Promise<readonly StoredCharge[]> {
  return connection.any(sql.type(chargeRow)`
    select ${storedCharge} from ${sql.unnest(
      stretches.map(({ fromId, toId }) => [fromId, toId]),
      ['uuid', 'uuid'],
    )} as stretches (from_id, to_id)
      cross join lateral
        farebox.charges_of_developer(${developerNumber}, from_id, to_id, ${tool}, ${limit}) as charges
    order by id desc limit ${limit}
  `);
}

const MINUTES_OF_HOUR = 60;

/** Searches only the minutes that have such charges, so that a rare tool is found quickly among millions of charges. */
async function listToolCharges(
  connection: Connection,
  developer: DeveloperRef,
  filter: ChargeFilter & { readonly tool: string },
  page: Page,
): Promise<readonly StoredCharge[]> {
  const stretches = await findToolStretches(connection, developer, filter, page);
  const wanted = idsBetween(filter, page);
  const between = stretches.map(({ fromMs, toMs }) => ({
    fromId: laterOf(uuidFloor(fromMs), wanted.fromId),
    toId: earlierOf(uuidFloor(toMs), wanted.toId),
  }));
  return listBetween(connection, developer, between, filter.tool, page.limit);
}

interface Stretch {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The newest minutes that together hold a page of a tool's charges. Adjacent minutes are merged. */
async function findToolStretches(
  connection: Connection,
  { developerNumber }: DeveloperRef,
  { tool, fromId, toId }: ChargeFilter & { readonly tool: string },
  { limit, beforeId }: Page,
): Promise<readonly Stretch[]> {
  const fromMs = fromId === undefined ? 0 : uuidTimeMs(fromId);
  const bounds = [toId, beforeId].filter((id) => id !== undefined).map(uuidTimeMs);
  const toMs = Math.min(TIME_MS_MAX, ...bounds);
  const ofTool = sql.fragment`developer = ${developerNumber} and tool = ${tool}`;
  const meets = (begin: 'begins_at' | 'minute', lengthMs: number) => sql.fragment`
    ${sql.identifier([begin])} > ${timestampOf(fromMs - lengthMs)}
    and ${sql.identifier([begin])} <= ${timestampOf(toMs)}
  `;
  // A marked minute has at least one charge, so as many minutes as the page has rows are enough. But a bound may
  // exclude the newest one, and the minutes after it in its hour.
  const minutes = bounds.length > 0 ? limit + 1 : limit;
  const inHours = bounds.length > 0 ? minutes + MINUTES_OF_HOUR : minutes;
  const rows = await connection.any(sql.type(stretchRow)`
    with hours as (
      select begins_at, charged_minutes, bit_count(charged_minutes::bit(64)) as minutes
      from farebox.earnings
      where span = 'hour' and ${ofTool} and charged_minutes <> 0 and ${meets('begins_at', HOUR_MS)}
      order by begins_at desc limit ${inHours}
    ), newest_hours as (
      select begins_at, charged_minutes,
        sum(minutes) over (order by begins_at desc) - minutes as newer_minutes
      from hours
    )
    select lower(stretch) as "from", upper(stretch) as "to"
    from (
      select unnest(range_agg(tstzrange(minute, minute + interval '1 minute'))) as stretch
      from (
        select minute from (
          select begins_at + n * interval '1 minute' as minute
          from newest_hours cross join generate_series(0, ${MINUTES_OF_HOUR - 1}::int) n
          where newer_minutes < ${inHours} and charged_minutes >> n & 1 = 1
          union
          select minute from farebox.earnings_tail where ${ofTool} and charges > 0
        ) charged where ${meets('minute', MINUTE_MS)} order by minute desc limit ${minutes}
      ) newest
    ) stretches
  `);
  return rows.map(({ from, to }) => ({ fromMs: Date.parse(from), toMs: Date.parse(to) }));
}

export async function findDeveloperCharge(
  connection: Connection,
  { developerNumber }: DeveloperRef,
  id: string,
): Promise<StoredCharge | null> {
  return connection.maybeOne(sql.type(chargeRow)`
    select ${storedCharge} from farebox.charges
    where developer = ${developerNumber} and ${developersChargeIs(id)}
  `);
}

export async function findConsumerCharge(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
  id: string,
): Promise<StoredCharge | null> {
  return connection.maybeOne(sql.type(chargeRow)`
    select ${storedCharge} from farebox.charges
    where ledger = ${ledger} and consumer_id = ${consumerId} and id = ${id}
  `);
}

/** A live charge by its id alone. */
export async function findAnyCharge(
  connection: Connection,
  id: string,
): Promise<StoredCharge | null> {
  return connection.maybeOne(sql.type(chargeRow)`
    select ${storedCharge} from farebox.charges
    where id = ${id} and (ledger, consumer_id) = (
      select a.ledger, a.consumer_id from farebox.parties_of_charge(${id}) party
      join farebox.accounts a on a.consumer_id = party.consumer_id and a.live_account_id is null
    )
  `);
}

/** Finds the charge that a receipt names. `developerId` is a UUID. */
export async function findChargeOf(
  connection: Connection,
  developerId: string,
  id: string,
): Promise<StoredCharge | null> {
  return connection.maybeOne(sql.type(chargeRow)`
    select ${storedCharge} from farebox.charges where ${developersChargeIs(id)} and developer =
      (select developer_number from farebox.accounts where developer_id = ${developerId})
  `);
}

/** Uses the index of a developer's charges. */
export function developersChargeIs(id: string) {
  return sql.fragment`
    substr(uuid_send(id), 1, 8)::int8 = substr(uuid_send(${id}::uuid), 1, 8)::int8 and id = ${id}::uuid
  `;
}

function matching({ fromId, toId, tool }: ChargeFilter) {
  return sql.and([
    fromId !== undefined && sql.fragment`id >= ${fromId}::uuid`,
    toId !== undefined && sql.fragment`id < ${toId}::uuid`,
    tool !== undefined && sql.fragment`tool = ${tool}`,
  ]);
}
