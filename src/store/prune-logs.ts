/**
 * Deletes rows that nothing reads any more: Stripe's events and ours, and approvals that nobody answered, after a
 * time, what has expired in the console, and people who never proved their address. Money, charges, top-ups, their
 * evidence and decisions are never deleted.
 */
import { countRow, type Database, sql } from './database.ts';
import { idFloorOf } from './database-ids.ts';

/** A fraction of a second of work. */
const ROWS_PER_STEP = 10_000;

export interface Pruned {
  readonly rows: number;
  /** Whether there may be more. */
  readonly hasMore: boolean;
}

/**
 * One bounded step. An event that Stripe sends again after it was deleted is recorded once more, and makes a
 * workflow ask Stripe once more.
 */
export async function pruneLogs(database: Database, retentionDays: number): Promise<Pruned> {
  const oldestId = idFloorOf(sql.fragment`now() - make_interval(days => ${retentionDays})`);
  const stripeEvents = await database.oneFirst(sql.type(countRow)`
    with gone as (
      delete from farebox.processor_events where id in (
        select id from farebox.processor_events
        where received_at < now() - make_interval(days => ${retentionDays})
        order by received_at limit ${ROWS_PER_STEP} for update skip locked
      ) returning 1
    )
    select count(*) as count from gone
  `);
  const events = await database.oneFirst(sql.type(countRow)`
    with old as (
      select id from farebox.events
      where id < ${oldestId}
      order by id limit ${ROWS_PER_STEP} for update skip locked
    ), deliveries as (
      delete from farebox.webhook_deliveries where event_id in (select id from old)
    ), gone as (
      delete from farebox.events where id in (select id from old) returning 1
    )
    select count(*) as count from gone
  `);
  const approvals = await database.oneFirst(sql.type(countRow)`
    with gone as (
      delete from farebox.approvals where id in (
        select id from farebox.approvals where status = 'expired' and id < ${oldestId}
        order by id limit ${ROWS_PER_STEP} for update skip locked
      ) returning 1
    )
    select count(*) as count from gone
  `);
  const sessions = await deleteExpired(database, 'sessions', 'id');
  const verifications = await deleteExpired(database, 'verifications', 'id');
  const links = await deleteExpired(database, 'sign_in_links', 'token_hash');
  const people = await deleteUnproven(database);
  const counts = [stripeEvents, events, approvals, sessions, verifications, links, people];
  return {
    rows: counts.reduce((sum, count) => sum + count),
    hasMore: Math.max(...counts) === ROWS_PER_STEP,
  };
}

/** Deletes rows of a table of the console that have expired, and returns how many. `key` is its primary key. */
function deleteExpired(database: Database, table: string, key: string): Promise<number> {
  const [rows, id] = [sql.identifier(['console', table]), sql.identifier([key])];
  return database.oneFirst(sql.type(countRow)`
    with gone as (
      delete from ${rows} where ${id} in (
        select ${id} from ${rows} where expires_at < now()
        limit ${ROWS_PER_STEP} for update skip locked
      ) returning 1
    )
    select count(*) as count from gone
  `);
}

/** A link that proves an address works for an hour. */
const UNPROVEN_HOURS = 24;

/**
 * Deletes people who have asked for a link and never used it, and returns how many. Somebody may have typed the address
 * of another person. Who signs up again becomes a new person.
 */
function deleteUnproven(database: Database): Promise<number> {
  return database.oneFirst(sql.type(countRow)`
    with gone as (
      delete from console.users where id in (
        select u.id from console.users u
        where u.account_id is null and u.created_at < now() - make_interval(hours => ${UNPROVEN_HOURS})
          and not exists (select from console.credentials c where c.user_id = u.id)
          and not exists (select from console.verifications v where v.value = u.id::text and v.expires_at > now())
        limit ${ROWS_PER_STEP} for update of u skip locked
      ) returning 1
    )
    select count(*) as count from gone
  `);
}
