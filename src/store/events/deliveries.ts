/**
 * Deliveries: each event for each endpoint that wants it. A row has the last attempt, and while it waits, the
 * time of the next one. Attempts are made elsewhere; their results are recorded here.
 */
import { randomUUIDv7 } from 'node:crypto';
import { Type, type Static } from 'typebox';
import { DELIVERY_STATUSES, GIVEN_UP_AFTER_DAYS } from '../../domain/webhook-delivery.ts';
import type { DeliveryStatus } from '../../domain/webhook-delivery.ts';
import {
  type Connection,
  type Database,
  durationOf,
  existsRow,
  nullable,
  row,
  sql,
  type Transaction,
} from '../database.ts';
import { FIRST_ID, LAST_ID, pageInSteps, type IdsBetween } from '../in-steps.ts';
import type { Page } from '../page.ts';
import { disableWebhookEndpoint, tellWorkflow } from './webhook-endpoints.ts';

const Delivery = Type.Object({
  /** The id of the event, which an endpoint gets once. */
  id: Type.String(),
  type: Type.String(),
  /** JSON. */
  data: Type.String(),
  status: Type.Enum(DELIVERY_STATUSES),
  attempts: Type.Integer(),
  /** When the event was made. */
  createdAt: Type.String(),
  attemptedAt: nullable(Type.String()),
  nextAttemptAt: nullable(Type.String()),
  durationMs: nullable(Type.Integer()),
  responseStatus: nullable(Type.Integer()),
  responseBody: nullable(Type.String()),
  error: nullable(Type.String()),
});
export type Delivery = Static<typeof Delivery>;

const DueDelivery = Type.Object({
  ...Delivery.properties,
  /**
   * Seconds since 1970, by Postgres' clock: receivers refuse what is signed at another time, and a worker's
   * may be wrong.
   */
  signedAt: Type.Integer(),
  /** When this attempt became due. As text, which keeps the microseconds. */
  dueAt: Type.String(),
});
export type DueDelivery = Static<typeof DueDelivery>;

const deliveryRow = row(Delivery);
const dueRow = row(DueDelivery);
const waitRow = row(Type.Object({ waitMs: Type.Number() }));
const failingRow = row(Type.Object({ days: nullable(Type.Number()) }));

const columns = sql.fragment`
  e.id, e.type, e.data::text as data, d.status, d.attempts,
  e.created_at as "createdAt", d.attempted_at as "attemptedAt", d.next_attempt_at as "nextAttemptAt",
  d.duration_ms as "durationMs", d.response_status as "responseStatus",
  d.response_body as "responseBody", d.error
`;
const deliveries = sql.fragment`farebox.webhook_deliveries d join farebox.events e on e.id = d.event_id`;

interface Wanted {
  readonly limit: number;
  /** How many of them may have failed before. */
  readonly retriesMax: number;
  /** The ids of events that are not wanted. */
  readonly except: readonly string[];
}

/** Lists due deliveries, the longest overdue first. Retries that exceed `retriesMax` hide no first attempts. */
export async function listDueDeliveries(
  connection: Connection,
  endpointId: string,
  { limit, retriesMax, except }: Wanted,
): Promise<readonly DueDelivery[]> {
  const isDue = sql.fragment`
    endpoint_id = ${endpointId} and status = 'waiting' and next_attempt_at <= now()
      and event_id <> all (${sql.array(except, 'uuid')})
  `;
  return connection.any(sql.type(dueRow)`
    with earliest as (
      select event_id, next_attempt_at, attempts from farebox.webhook_deliveries
      where ${isDue} order by next_attempt_at limit ${limit}
    ), chosen as (
      (select event_id from earliest where attempts > 0 order by next_attempt_at limit ${retriesMax})
      union all
      (
        select event_id from farebox.webhook_deliveries
        where ${isDue} and attempts = 0 order by next_attempt_at limit ${limit}
      )
    )
    select ${columns}, floor(extract(epoch from now()))::int8 as "signedAt", d.next_attempt_at::text as "dueAt"
    from ${deliveries}
    where d.endpoint_id = ${endpointId} and d.event_id = any (array(select event_id from chosen))
    order by d.next_attempt_at, d.event_id limit ${limit}
  `);
}

/** How long until the next one is due; 0 if one is, null if none waits. */
export async function nextDeliveryInMs(
  connection: Connection,
  endpointId: string,
): Promise<number | null> {
  // Without an aggregate: greatest would turn the minimum of no rows, null, into 0.
  return connection.maybeOneFirst(sql.type(waitRow)`
    select greatest(0, ceil(extract(epoch from next_attempt_at - clock_timestamp()) * 1000))::float8 as "waitMs"
    from farebox.webhook_deliveries where endpoint_id = ${endpointId} and status = 'waiting'
    order by next_attempt_at limit 1
  `);
}

const HASTENED_AT_ONCE = 1_000;

export interface Attempt {
  readonly endpointId: string;
  /** Where it was made. It says nothing of another address that the endpoint has since. */
  readonly url: string;
  readonly eventId: string;
  /** Before this one. */
  readonly attempts: number;
  /** As in the due delivery. */
  readonly dueAt: string;
  readonly durationMs: number;
  readonly responseStatus: number | null;
  readonly responseBody: string | null;
  readonly error: string | null;
}

const recorded = (attempt: Attempt) => sql.fragment`
  attempts = attempts + 1, attempted_at = now(), duration_ms = ${attempt.durationMs},
  response_status = ${attempt.responseStatus}, response_body = ${attempt.responseBody}, error = ${attempt.error}
`;
/** Otherwise another attempt was recorded meanwhile. */
const isMine = ({ endpointId, eventId, attempts }: Attempt) => sql.fragment`
  endpoint_id = ${endpointId} and event_id = ${eventId} and attempts = ${attempts}
`;

/** Once nothing waits, no attempt follows, so a failure would last by itself until the next event. */
const isAnyWaiting = sql.fragment`exists (
  select from farebox.webhook_deliveries d where d.endpoint_id = e.id and d.status = 'waiting'
)`;

/** Even if the endpoint was disabled meanwhile, which dropped the delivery: the endpoint has the event. */
export async function recordDelivered(database: Database, attempt: Attempt): Promise<void> {
  const { endpointId, url } = attempt;
  await database.transaction(async (tx) => {
    const failingDays = await lockFailing(tx, endpointId);
    await tx.query(sql.typeAlias('nothing')`
      update farebox.webhook_deliveries
      set status = 'delivered', next_attempt_at = null, ${recorded(attempt)} where ${isMine(attempt)}
    `);
    if (failingDays === null) return;
    await tx.query(sql.typeAlias('nothing')`
      update farebox.webhook_endpoints e set failing_since = null
      where e.id = ${endpointId} and (e.url = ${url} or not ${isAnyWaiting})
    `);
  });
}

/**
 * Makes waiting deliveries due, each at most once: one that fails although the endpoint accepts others was refused
 * itself, and keeps its pauses. Only while `url`, which accepted one, is the endpoint's address. In steps, so that no
 * lock is held for long. Returns whether there were any.
 */
export async function hastenDeliveries(
  database: Database,
  { endpointId, url }: Pick<Attempt, 'endpointId' | 'url'>,
): Promise<boolean> {
  // Without a lock: nearly always, nothing is to be hastened.
  const isToHasten = await database.oneFirst(sql.type(existsRow)`
    select exists (
      select from farebox.webhook_deliveries
      where endpoint_id = ${endpointId} and status = 'waiting' and next_attempt_at > now() and not is_hastened
    ) as exists
  `);
  if (!isToHasten) return false;
  let isAny = false;
  let hastened: number;
  do {
    hastened = await database.transaction(async (tx) => {
      await lockFailing(tx, endpointId);
      const { rowCount } = await tx.query(sql.typeAlias('nothing')`
        update farebox.webhook_deliveries set next_attempt_at = now(), is_hastened = true
        where endpoint_id = ${endpointId} and event_id = any (array(
          select event_id from farebox.webhook_deliveries
          where endpoint_id = ${endpointId} and status = 'waiting' and next_attempt_at > now() and not is_hastened
            and exists (select from farebox.webhook_endpoints where id = ${endpointId} and url = ${url})
          order by next_attempt_at limit ${HASTENED_AT_ONCE}
        ))
      `);
      return rowCount;
    });
    isAny ||= hastened > 0;
  } while (hastened === HASTENED_AT_ONCE);
  return isAny;
}

/**
 * Returns whether the endpoint has failed for so long that it should be disabled. An event that was to be sent again
 * while this attempt was made stays due.
 */
export async function recordFailed(
  database: Database,
  attempt: Attempt,
  retryMs: number,
): Promise<boolean> {
  const { endpointId, eventId, url } = attempt;
  const isSameTime = sql.fragment`(next_attempt_at = ${attempt.dueAt}::timestamptz)`;
  return database.transaction(async (tx) => {
    const failingDays = await lockFailing(tx, endpointId);
    const { rowCount } = await tx.query(sql.typeAlias('nothing')`
      update farebox.webhook_deliveries set ${recorded(attempt)},
        status = case when is_old and ${isSameTime} then 'failed' else 'waiting' end,
        next_attempt_at = case when not ${isSameTime} then next_attempt_at
          when not is_old then now() + ${retryMs}::float8 * interval '1 ms' end
      from (
        select created_at < now() - make_interval(days => ${GIVEN_UP_AFTER_DAYS}) as is_old
        from farebox.events where id = ${eventId}
      ) e
      where ${isMine(attempt)} and status = 'waiting'
    `);
    // Another worker made the same attempt, and its result counts, which may be a success. Or the delivery was dropped.
    if (rowCount === 0) return false;
    if (failingDays !== null && failingDays > GIVEN_UP_AFTER_DAYS) return true;
    await tx.query(sql.typeAlias('nothing')`
      update farebox.webhook_endpoints e
      set failing_since = case when ${isAnyWaiting}
        then coalesce(e.failing_since, case when e.url = ${url} then now() end) end
      where e.id = ${endpointId}
    `);
    return false;
  });
}

/**
 * Only if it has still been failing for that long: another attempt may have succeeded since, or its owner may have
 * given it another address.
 */
export async function disableIfStillFailing(database: Database, endpointId: string): Promise<void> {
  await database.transaction(async (tx) => {
    const failingDays = await lockFailing(tx, endpointId);
    if (failingDays === null || failingDays <= GIVEN_UP_AFTER_DAYS) return;
    await disableWebhookEndpoint(tx, endpointId, 'failing');
  });
}

/**
 * For how many days attempts have failed; null if the last one succeeded, or if no event waits. The endpoint is locked
 * before its deliveries, everywhere.
 */
async function lockFailing(tx: Transaction, endpointId: string): Promise<number | null> {
  return tx.maybeOneFirst(sql.type(failingRow)`
    select (extract(epoch from now() - failing_since) / 86400)::float8 as days
    from farebox.webhook_endpoints where id = ${endpointId} for no key update
  `);
}

/** Newest first. In steps where few of millions may match and no index has them. */
export async function listDeliveries(
  connection: Connection,
  endpointId: string,
  status: DeliveryStatus | undefined,
  { limit, beforeId }: Page,
): Promise<readonly Delivery[]> {
  const range = { fromId: FIRST_ID, toId: beforeId ?? LAST_ID };
  const list = ({ fromId, toId }: IdsBetween, atMost: number) =>
    connection.any(sql.type(deliveryRow)`
      select ${columns} from ${deliveries}
      where d.endpoint_id = ${endpointId} and d.event_id >= ${fromId} and d.event_id < ${toId}
        and ${status === undefined ? sql.fragment`true` : sql.fragment`d.status = ${status}`}
      order by d.event_id desc limit ${atMost}
    `);
  if (status === undefined || status === 'waiting') return list(range, limit);
  const rows = {
    from: sql.fragment`farebox.webhook_deliveries where endpoint_id = ${endpointId}`,
    id: sql.fragment`event_id`,
  };
  return pageInSteps(connection, rows, range, limit, list);
}

async function getDelivery(
  connection: Connection,
  endpointId: string,
  eventId: string,
): Promise<Delivery> {
  return connection.one(sql.type(deliveryRow)`
    select ${columns} from ${deliveries}
    where d.endpoint_id = ${endpointId} and d.event_id = ${eventId}
  `);
}

/** Sends it again, now. Null when the endpoint has no such delivery. */
export async function redeliver(
  database: Database,
  endpointId: string,
  eventId: string,
): Promise<Delivery | null> {
  return database.transaction(async (tx) => {
    const { rowCount } = await tx.query(sql.typeAlias('nothing')`
      update farebox.webhook_deliveries set status = 'waiting', next_attempt_at = now()
      where endpoint_id = ${endpointId} and event_id = ${eventId}
    `);
    if (rowCount === 0) return null;
    await tellWorkflow(tx, endpointId);
    return getDelivery(tx, endpointId, eventId);
  });
}

/** An event for this endpoint alone, no matter which types it wants. */
export async function postTest(
  database: Database,
  { id: endpointId, accountId }: { readonly id: string; readonly accountId: string },
  data: object,
): Promise<Delivery> {
  return database.transaction(async (tx) => {
    const eventId = randomUUIDv7();
    await tx.query(sql.typeAlias('nothing')`
      with posted as (
        insert into farebox.events (id, account_id, type, data)
        values (${eventId}, ${accountId}, 'webhook_endpoint.test', ${JSON.stringify(data)}::json)
      )
      insert into farebox.webhook_deliveries (endpoint_id, event_id) values (${endpointId}, ${eventId})
    `);
    await tellWorkflow(tx, endpointId);
    return getDelivery(tx, endpointId, eventId);
  });
}

/**
 * Writes notices for endpoints with a delivery that has been due for this long, since their workflow may be
 * gone. Returns how many. Of each endpoint it reads the delivery that is due first: millions may be late.
 */
export async function noteLateDeliveries(connection: Connection, lateMs: number): Promise<number> {
  const { rowCount } = await connection.query(sql.typeAlias('nothing')`
    with recursive earliest as (
      (
        select endpoint_id, next_attempt_at, ledger from farebox.webhook_deliveries
        where status = 'waiting' order by endpoint_id, next_attempt_at limit 1
      )
      union all
      select following.* from earliest cross join lateral (
        select endpoint_id, next_attempt_at, ledger from farebox.webhook_deliveries
        where status = 'waiting' and endpoint_id > earliest.endpoint_id
        order by endpoint_id, next_attempt_at limit 1
      ) following
    )
    insert into farebox.outbox (ledger, topic, subject_id)
    select d.ledger, 'webhook_endpoint', d.endpoint_id
    from earliest d join farebox.webhook_endpoints e on e.id = d.endpoint_id
    where d.next_attempt_at < now() - ${durationOf(lateMs)} and e.status = 'active'
      -- One notice is enough while Temporal is down.
      and not exists (select from farebox.outbox o where o.subject_id = e.id)
  `);
  return rowCount;
}
