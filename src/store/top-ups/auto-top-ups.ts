/**
 * Automatic top-ups. A charge that leaves less than the threshold, or is refused and would be covered by one, writes a
 * notice and clears the threshold (migrations/functions/note_crossings.sql, note_refusals.sql), so that no other charge
 * asks. Here the notice becomes a top-up, one at a time per consumer and within both ceilings. The end of that top-up
 * restores the threshold. Each step is one transaction.
 */
import { Type, type Static } from 'typebox';
import {
  AUTO_TOP_UP_STATUSES,
  type AutoTopUpState,
  type SuspectReason,
  type TopUpFailure,
} from '../../domain/top-up.ts';
import { insertTopUp } from './insert-top-up.ts';
import { hasConsent, lockConsent, obstacleTo } from './monthly-ceiling.ts';
import { balanceOf, lockConsumer, type ConsumerRef } from '../balance/consumers.ts';
import {
  micros,
  nullable,
  row,
  sql,
  type Connection,
  type Database,
  type Fragment,
  type Transaction,
} from '../database.ts';
import {
  deleteNotice,
  deleteNoticesOf,
  hastenNotices,
  lockNotice,
  postNotice,
  postponeNotice,
  type Notice,
} from '../outbox.ts';

/** Failures in a row, after which automatic top-ups turn themselves off. */
const DECLINES_IN_A_ROW_MAX = 3;

const State = Type.Object({
  status: Type.Enum(AUTO_TOP_UP_STATUSES),
  reason: nullable(Type.String()),
});

const Settings = Type.Object({
  /** A charge that leaves less than this triggers a top-up. */
  thresholdMicros: micros,
  amountMicros: micros,
  /** In a UTC month, within what the owner consented to. */
  ceilingMicros: micros,
});
export type AutoTopUpSettings = Static<typeof Settings>;

const AutoTopUp = Type.Object({ ...State.properties, ...Settings.properties });
export type AutoTopUp = Static<typeof AutoTopUp>;

const Due = Type.Object({
  ...AutoTopUp.properties,
  ledger: Type.Integer(),
  consumerId: Type.String(),
  accountId: Type.String(),
  isNeeded: Type.Boolean(),
  isPending: Type.Boolean(),
  waitMs: Type.Integer(),
});
type Due = Static<typeof Due>;

const Current = Type.Object({ ...AutoTopUp.properties, isNeeded: Type.Boolean() });

const consumerRow = row(Type.Object({ ledger: Type.Integer(), consumerId: Type.String() }));
const autoTopUpRow = row(AutoTopUp);
const dueRow = row(Due);
const currentRow = row(Current);

const columns = sql.fragment`
  a.status, a.reason, a.threshold_micros as "thresholdMicros", a.amount_micros as "amountMicros",
  a.ceiling_micros as "ceilingMicros"
`;

const isLow = sql.fragment`${balanceOf('c')} < a.threshold_micros`;

/** Null if the owner has turned them off, or never on. */
export async function findAutoTopUp(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
): Promise<AutoTopUp | null> {
  return connection.maybeOne(sql.type(autoTopUpRow)`
    select ${columns} from farebox.auto_top_ups a
    where ledger = ${ledger} and consumer_id = ${consumerId}
  `);
}

/**
 * The same, with whether this top-up is still needed: until something is credited and the balance is no longer low. A
 * released hold alone does not end it: the next hold would ask again.
 */
export async function findAutoTopUpFor(
  connection: Connection,
  { id, ledger, consumerId }: ConsumerRef & { readonly id: string },
): Promise<Static<typeof Current> | null> {
  const since = sql.fragment`${id}::uuid`;
  return connection.maybeOne(sql.type(currentRow)`
    select ${columns}, (${isLow} or ${isUncreditedSince(since)}) as "isNeeded"
    from farebox.auto_top_ups a
    join farebox.consumers c on c.ledger = a.ledger and c.id = a.consumer_id
    where a.ledger = ${ledger} and a.consumer_id = ${consumerId}
  `);
}

/** The same, without the owner's settings. */
export async function findAutoTopUpState(
  connection: Connection,
  consumer: ConsumerRef,
): Promise<AutoTopUpState | null> {
  const found = await findAutoTopUp(connection, consumer);
  return found && { status: found.status, reason: found.reason };
}

/**
 * Null turns them off. Only the owner changes them, never a consumer key. Each change resets the count of
 * declines. Without the owner's consent, they would be on and never charge the card. A concurrent withdrawal of
 * the consent has the effect of a later one.
 */
export async function setAutoTopUp(
  connection: Connection,
  consumer: ConsumerRef,
  settings: AutoTopUpSettings | null,
): Promise<'set' | 'consent_required'> {
  const { ledger, consumerId } = consumer;
  if (settings && !(await hasConsent(connection, consumerId))) return 'consent_required';
  await connection.transaction(async (tx) => {
    await deleteNoticesOf(tx, 'auto_top_up', consumerId);
    await lockConsumer(tx, consumer);
    await tx.query(sql.typeAlias('nothing')`
      delete from farebox.auto_top_ups where ledger = ${ledger} and consumer_id = ${consumerId}
    `);
    if (settings) {
      await tx.query(sql.typeAlias('nothing')`
        insert into farebox.auto_top_ups
          (ledger, consumer_id, threshold_micros, amount_micros, ceiling_micros)
        values (${ledger}, ${consumerId}, ${settings.thresholdMicros}, ${settings.amountMicros},
          ${settings.ceilingMicros})
      `);
    }
    await switchAskingOn(tx, consumer);
  });
  return 'set';
}

/**
 * The processor's customer has a new card, which is the one to be charged unless the owner has chosen
 * another. Ends the pause after failures of the old one.
 */
export async function recordCardSaved(tx: Transaction, customerId: string): Promise<void> {
  // Few consumers have automatic top-ups, fewer a failure.
  const failed = await tx.maybeOne(sql.type(consumerRow)`
    select a.ledger, a.consumer_id as "consumerId" from farebox.auto_top_ups a
    join farebox.accounts o on o.ledger = a.ledger and o.consumer_id = a.consumer_id
    where a.declines > 0 and o.processor_customer_id = ${customerId} and o.processor_card_id is null
  `);
  if (!failed) return;
  await hastenNotices(tx, 'auto_top_up', failed.consumerId);
  await forgetFailures(tx, failed);
}

/** The next top-ups charge this card. Ends the pause after failures of the one before. */
export async function chooseCard(
  connection: Connection,
  consumer: ConsumerRef,
  cardId: string,
): Promise<void> {
  await connection.transaction(async (tx) => {
    // The notice before the account, as when it is taken up.
    await hastenNotices(tx, 'auto_top_up', consumer.consumerId);
    const { rowCount } = await tx.query(sql.typeAlias('nothing')`
      update farebox.accounts set processor_card_id = ${cardId}
      where consumer_id = ${consumer.consumerId} and processor_card_id is distinct from ${cardId}
    `);
    if (rowCount === 1) await forgetFailures(tx, consumer);
  });
}

/** As if none had failed. A payment that waits for the cardholder still does. */
async function forgetFailures(tx: Transaction, consumer: ConsumerRef): Promise<void> {
  await lockConsumer(tx, consumer);
  await tx.query(sql.typeAlias('nothing')`
    update farebox.auto_top_ups set declines = 0, status = 'on', reason = null, not_before = now()
    where ledger = ${consumer.ledger} and consumer_id = ${consumer.consumerId} and declines > 0
      and status <> 'off' and reason is distinct from 'authentication_required'
  `);
}

/** How often a top-up that a ceiling forbids is checked again: the month may be over. */
const CEILING_RECHECK_MS = 3_600_000;

/**
 * Turns a notice into a top-up with a notice for its workflow, postpones it, or drops it if there is nothing to do. The
 * notice is locked meanwhile and deleted in the same transaction, so it becomes exactly one top-up.
 */
export async function takeUpAutoTopUp(database: Database, notice: Notice): Promise<void> {
  await database.transaction(async (tx) => {
    if (!(await lockNotice(tx, notice.id))) return;
    const consent = await lockConsent(tx, notice.subjectId);
    await lockConsumerOf(tx, notice.subjectId);
    const due = await findDue(tx, notice);
    // The end of the top-up in progress restores the threshold.
    if (!due || due.status === 'off' || due.isPending) return deleteNotice(tx, notice.id);
    if (due.waitMs > 0) return postpone(tx, notice, due.waitMs);
    // After a dropped notice, the next charge asks again.
    if (!due.isNeeded) {
      await deleteNotice(tx, notice.id);
      await setState(tx, due, 'on', null);
      return switchAskingOn(tx, due);
    }
    const obstacle = obstacleTo(due, consent);
    await setState(tx, due, obstacle ? 'waiting' : 'on', obstacle);
    if (obstacle) return postpone(tx, notice, CEILING_RECHECK_MS);
    const topUp = await insertTopUp(tx, {
      ledger: due.ledger,
      consumerId: due.consumerId,
      accountId: due.accountId,
      method: 'direct',
      amountMicros: due.amountMicros,
      consentCeilingMicros: consent.ceilingMicros,
      automaticCeilingMicros: due.ceilingMicros,
    });
    await postNotice(tx, 'top_up', topUp.id, { ledger: due.ledger });
    await deleteNotice(tx, notice.id);
  });
}

/**
 * When it is due again, possibly next month, only a balance that is low asks, and no charge that was refused
 * long before.
 */
async function postpone(tx: Transaction, { id }: Notice, delayMs: number): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    update farebox.outbox set is_refused = false where id = ${id}
  `);
  await postponeNotice(tx, id, delayMs);
}

/** After its account, as everywhere: see `lockConsumer`. */
async function lockConsumerOf(tx: Transaction, consumerId: string): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    select from farebox.consumers
    where (ledger, id) = (select ledger, consumer_id from farebox.accounts where consumer_id = ${consumerId}) for update
  `);
}

async function findDue(
  tx: Transaction,
  { id, subjectId }: Pick<Notice, 'id' | 'subjectId'>,
): Promise<Due | null> {
  const since = sql.fragment`(select uuidv7(created_at - clock_timestamp()) from farebox.outbox where id = ${id})`;
  // A refused charge that the amount covers asks at any balance, unless something was credited since.
  const isRefused = sql.fragment`(select is_refused from farebox.outbox where id = ${id})`;
  return tx.maybeOne(sql.type(dueRow)`
    select ${columns}, a.ledger, a.consumer_id as "consumerId", o.id as "accountId",
      (${isLow} or ${isRefused} and ${isUncreditedSince(since)}) as "isNeeded",
      exists (
        select from farebox.top_ups t
        where t.ledger = a.ledger and t.consumer_id = a.consumer_id and t.automatic and t.status = 'pending'
      ) as "isPending",
      ceil(extract(epoch from greatest(a.not_before - now(), '0')) * 1000)::int8 as "waitMs"
    from farebox.accounts o
    join farebox.auto_top_ups a on a.ledger = o.ledger and a.consumer_id = o.consumer_id
    join farebox.consumers c on c.ledger = o.ledger and c.id = o.consumer_id
    where o.consumer_id = ${subjectId}
  `);
}

/** `since` is an id: ids are made under the consumer's lock, unlike created_at. */
function isUncreditedSince(since: Fragment): Fragment {
  return sql.fragment`not exists (
    select from farebox.movements m
    where m.ledger = a.ledger and m.consumer_id = a.consumer_id and m.amount_micros > 0 and m.id > ${since}
  )`;
}

/** The codes of top-ups that the owner's consent did not allow. */
const FORBIDDEN: ReadonlySet<string> = new Set(['consent_required', 'consent_ceiling_reached']);

export type Ending =
  | { readonly status: 'completed' | 'expired' }
  | {
      readonly status: 'failed';
      readonly failure: TopUpFailure;
      /** How long to wait after the first decline before charging the card again; twice as long after the second. */
      readonly retryMs: number;
      /** The bank will never accept the card again. */
      readonly isFinal?: boolean;
    };

/**
 * Part of the transaction that ends an automatic top-up, after it locked the consumer. Counts declines, and turns
 * automatic top-ups off after the last one allowed, or restores the threshold. If they are off by now, they
 * stay off. Null if the owner turned them off.
 */
export async function recordAutoTopUpResult(
  tx: Transaction,
  consumer: ConsumerRef,
  ending: Ending,
): Promise<AutoTopUpState | null> {
  await countEnding(tx, consumer, ending);
  await switchAskingOn(tx, consumer);
  return findAutoTopUpState(tx, consumer);
}

async function countEnding(tx: Transaction, consumer: ConsumerRef, ending: Ending): Promise<void> {
  const { ledger, consumerId } = consumer;
  switch (ending.status) {
    case 'expired':
      // Nobody confirmed it at the bank. The next charge that leaves too little asks again.
      await tx.query(sql.typeAlias('nothing')`
        update farebox.auto_top_ups set status = 'on', reason = null
        where ledger = ${ledger} and consumer_id = ${consumerId} and status = 'waiting'
          and reason = 'authentication_required'
      `);
      return;
    case 'completed':
      await tx.query(sql.typeAlias('nothing')`
        update farebox.auto_top_ups set declines = 0, status = 'on', reason = null, not_before = now()
        where ledger = ${ledger} and consumer_id = ${consumerId} and status <> 'off'
      `);
      return;
    case 'failed':
      // The card was not tried. The next charge asks again, and its notice waits for the consent or a higher ceiling.
      if (FORBIDDEN.has(ending.failure.code)) {
        await setState(tx, consumer, 'waiting', ending.failure.code);
        return;
      }
      const isLast = sql.fragment`declines + 1 >= ${ending.isFinal ? 1 : DECLINES_IN_A_ROW_MAX}`;
      await tx.query(sql.typeAlias('nothing')`
        update farebox.auto_top_ups set declines = declines + 1, reason = ${ending.failure.code},
          status = case when ${isLast} then 'off' else 'waiting' end,
          mail_owed_at = case when ${isLast} then now() end,
          not_before = now() + ${ending.retryMs}::int8 * 2 ^ declines * interval '1 ms'
        where ledger = ${ledger} and consumer_id = ${consumerId} and status <> 'off'
      `);
  }
}

/**
 * Turns them off as the last failure does, under the consumer's lock: the card may be stolen, and each
 * payment with it may be disputed too. Until the owner turns them on again, no charge asks, and no top-up
 * that waits charges the card.
 */
export async function turnOffSuspect(
  tx: Transaction,
  consumer: ConsumerRef,
  reason: SuspectReason,
): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    update farebox.auto_top_ups set status = 'off', reason = ${reason}, mail_owed_at = now()
    where ledger = ${consumer.ledger} and consumer_id = ${consumer.consumerId} and status <> 'off'
  `);
  await switchAskingOn(tx, consumer);
}

async function setState(
  tx: Transaction,
  { ledger, consumerId }: ConsumerRef,
  status: 'on' | 'waiting',
  reason: string | null,
): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    update farebox.auto_top_ups set status = ${status}, reason = ${reason}
    where ledger = ${ledger} and consumer_id = ${consumerId} and status <> 'off'
  `);
}

/** Restores the threshold, so that charges ask again. Not while they are off. */
async function switchAskingOn(
  connection: Connection,
  { ledger, consumerId }: ConsumerRef,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.consumers set auto_top_up_below_micros = (
      select threshold_micros from farebox.auto_top_ups
      where ledger = ${ledger} and consumer_id = ${consumerId} and status <> 'off'
    )
    where ledger = ${ledger} and id = ${consumerId}
  `);
}
