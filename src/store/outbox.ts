/**
 * The queue of messages to workflows, each written in the transaction of the change that it announces. A relay delivers
 * it afterwards, at least once, even if processes die on the way.
 */
import { Type, type Static } from 'typebox';
import { durationOf, row, sql, type Connection, type Transaction } from './database.ts';

/**
 * `grant`, `invocation`, `approval`: the subject's row is new or has changed, so its workflow must exist and
 * read it. `top_up`: the same, until the workflow has claimed the row. `payment_reported`,
 * `reversal_reported`: the top-up's workflow, or the one of its reversals, must ask Stripe. `auto_top_up`:
 * the subject is a consumer, whose automatic top-up is due. `webhook_endpoint`: the endpoint has something to
 * send, or was changed or deleted.
 */
export const TOPICS = [
  'grant',
  'invocation',
  'auto_top_up',
  'top_up',
  'payment_reported',
  'reversal_reported',
  'approval',
  'webhook_endpoint',
] as const;
export type Topic = (typeof TOPICS)[number];

const Notice = Type.Object({
  id: Type.Integer(),
  topic: Type.Enum(TOPICS),
  subjectId: Type.String(),
  attempts: Type.Integer(),
});
export type Notice = Static<typeof Notice>;

const noticeRow = row(Notice);
const runningRow = row(Type.Object({ isRunning: Type.Boolean() }));
const lockedRow = row(Type.Pick(Notice, ['id']));

/** The ledger of a notice about a global row. */
const NO_LEDGER = -1;

interface Posted {
  /** The subject's; none when it is a global row. */
  readonly ledger?: number;
  /** Relays do not deliver it during this time. */
  readonly delayMs?: number;
}

/** Relays find it soon after the transaction commits. */
export async function postNotice(
  connection: Connection,
  topic: Topic,
  subjectId: string,
  { ledger = NO_LEDGER, delayMs = 0 }: Posted = {},
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    insert into farebox.outbox (ledger, topic, subject_id, next_attempt_at)
    values (${ledger}, ${topic}, ${subjectId}, now() + ${durationOf(delayMs)})
  `);
}

/** How many repeated notices one statement deletes: this takes a fraction of a second. */
const REPEATED_MAX = 10_000;

/**
 * Takes waiting notices, oldest first. For `leaseMs`, no other relay takes them. Topics of a newer release are left to
 * its relays.
 * A webhook endpoint gets a notice with each event, and one signal answers all of them. So those that wait beside a
 * notice that is taken are deleted: otherwise, the events of one account could delay everyone's notices. None of them
 * is lost: the taken one stays until its signal was sent, which is after they were committed.
 */
export async function takeNotices(
  connection: Connection,
  limit: number,
  leaseMs: number,
): Promise<readonly Notice[]> {
  return connection.any(sql.type(noticeRow)`
    with taken as (
      update farebox.outbox
      set attempts = attempts + 1, next_attempt_at = now() + ${durationOf(leaseMs)}
      where id in (
        select id from farebox.outbox
        where next_attempt_at <= now() and topic = any(${sql.array(TOPICS, 'text')})
        order by next_attempt_at limit ${limit} for update skip locked
      )
      returning id, topic, subject_id, attempts
    ), repeated as (
      delete from farebox.outbox where id = any (array(
        select id from farebox.outbox
        where subject_id = any (array(select distinct subject_id from taken where topic = 'webhook_endpoint'))
          and topic = 'webhook_endpoint' and next_attempt_at <= now() and id <> all (array(select id from taken))
        limit ${REPEATED_MAX} for update skip locked
      ))
    )
    select id, topic, subject_id as "subjectId", attempts from taken
  `);
}

/** Prevents other deliveries until the transaction ends. False: it was already delivered. */
export async function lockNotice(tx: Transaction, id: number): Promise<boolean> {
  const locked = await tx.maybeOne(sql.type(lockedRow)`
    select id from farebox.outbox where id = ${id} for update
  `);
  return locked !== null;
}

export async function deleteNotice(connection: Connection, id: number): Promise<void> {
  await deleteNotices(connection, [id]);
}

export async function deleteNotices(connection: Connection, ids: readonly number[]): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    delete from farebox.outbox where id = any(${sql.array(ids, 'int8')})
  `);
}

/** Called when the writer has told the workflow itself. */
export async function deleteNoticesOf(
  connection: Connection,
  topic: Topic,
  subjectId: string,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    delete from farebox.outbox where topic = ${topic} and subject_id = ${subjectId}
  `);
}

/** Relays deliver those that were postponed now. */
export async function hastenNotices(
  connection: Connection,
  topic: Topic,
  subjectId: string,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.outbox set next_attempt_at = now() where topic = ${topic} and subject_id = ${subjectId}
  `);
}

export async function postponeNotice(
  connection: Connection,
  id: number,
  delayMs: number,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.outbox set next_attempt_at = now() + ${durationOf(delayMs)}
    where id = ${id}
  `);
}

/** A relay records a heartbeat at this interval. */
export const BEAT_MS = 5_000;
/** Several beats, because a busy machine delays them. A relay that was killed counts as running for that long. */
const SILENCE_SECONDS_MAX = 20;

export async function beatRelay(connection: Connection, relayId: string): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    with dead as (delete from farebox.relays where beat_at < now() - interval '1 day')
    insert into farebox.relays (id) values (${relayId})
    on conflict (id) do update set beat_at = now()
  `);
}

/** It has stopped. */
export async function forgetRelay(connection: Connection, relayId: string): Promise<void> {
  await connection.query(
    sql.typeAlias('nothing')`delete from farebox.relays where id = ${relayId}`,
  );
}

/** Whether a worker is running that would deliver notices. The beats in a backup that was restored do not count. */
export async function isRelayRunning(connection: Connection): Promise<boolean> {
  return connection.oneFirst(sql.type(runningRow)`
    select exists (
      select from farebox.relays
      where beat_at > now() - make_interval(secs => ${SILENCE_SECONDS_MAX})
        and beat_at > pg_postmaster_start_time()
    ) as "isRunning"
  `);
}
