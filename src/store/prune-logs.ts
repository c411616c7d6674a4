/**
 * Deletes rows that nothing reads any more: Stripe's events and ours, and approvals that nobody answered, after a
 * time, and what has expired in the console. Money, charges, top-ups, their evidence and decisions are never deleted.
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
  const sessions = await database.oneFirst(sql.type(countRow)`
    with gone as (
      delete from console.sessions where id in (
        select id from console.sessions where expires_at < now()
        limit ${ROWS_PER_STEP} for update skip locked
      ) returning 1
    )
    select count(*) as count from gone
  `);
  const verifications = await database.oneFirst(sql.type(countRow)`
    with gone as (
      delete from console.verifications where id in (
        select id from console.verifications where expires_at < now()
        limit ${ROWS_PER_STEP} for update skip locked
      ) returning 1
    )
    select count(*) as count from gone
  `);
  const links = await database.oneFirst(sql.type(countRow)`
    with gone as (
      delete from console.sign_in_links where token_hash in (
        select token_hash from console.sign_in_links where expires_at < now()
        limit ${ROWS_PER_STEP} for update skip locked
      ) returning 1
    )
    select count(*) as count from gone
  `);
  const counts = [stripeEvents, events, approvals, sessions, verifications, links];
  return {
    rows: counts.reduce((sum, count) => sum + count),
    hasMore: Math.max(...counts) === ROWS_PER_STEP,
  };
}
