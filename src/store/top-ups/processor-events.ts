/**
 * The log of the payment processor's events. Each is stored before it is acknowledged, unique by its id, together
 * with the notice for the workflow of its top-up, or with what a saved card changes.
 */
import { countRow, sql, type Connection } from '../database.ts';
import type { Topic } from '../outbox.ts';
import { recordCardSaved } from './auto-top-ups.ts';

export interface ProcessorEvent {
  readonly id: string;
  readonly type: string;
  readonly objectId: string | undefined;
  /** From the event itself; neither id has to exist in our tables. */
  readonly topUpId: string | undefined;
  readonly paymentIntentId: string | undefined;
  /** The topic of the notice for the top-up's workflow; undefined if events of this type do not affect it. */
  readonly topic: Extract<Topic, 'payment_reported' | 'reversal_reported'> | undefined;
  /** An event of a payment. It affects only a top-up that waits for the cardholder's confirmation. */
  readonly isFailedAttempt: boolean;
  /** The processor's id of the customer that saved a card. Undefined for all other events. */
  readonly cardSavedBy: string | undefined;
}

export async function recordProcessorEvent(
  connection: Connection,
  event: ProcessorEvent,
): Promise<void> {
  const { cardSavedBy } = event;
  if (cardSavedBy === undefined) {
    await store(connection, event);
    return;
  }
  await connection.transaction(async (tx) => {
    if (await store(tx, event)) await recordCardSaved(tx, cardSavedBy);
  });
}

/**
 * Stores the event once and, if it is about a top-up of ours, the notice, in the same statement. False: it
 * was stored before.
 */
async function store(connection: Connection, event: ProcessorEvent): Promise<boolean> {
  const stored = await connection.oneFirst(sql.type(countRow)`
    with about as materialized (
      select t.id, t.ledger, t.status = 'pending' and t.authentication_asked_at is not null as awaits_payer
      from farebox.top_ups t
      where t.id = ${event.topUpId ?? null}::uuid
        or t.payment_intent_id = ${event.paymentIntentId ?? null}
        or t.session_id = ${event.objectId ?? null}
      limit 1
    ), recorded as (
      insert into farebox.processor_events (id, type, object_id, top_up_id)
      select ${event.id}, ${event.type}, ${event.objectId ?? null}, (select id from about)
      on conflict (id) do nothing
      returning top_up_id
    ), noted as (
      insert into farebox.outbox (ledger, topic, subject_id)
      select about.ledger, topic, about.id
      from recorded join about on about.id = recorded.top_up_id, (values (${event.topic ?? null}::text)) as told (topic)
      where topic is not null and (about.awaits_payer or not ${event.isFailedAttempt})
    )
    select count(*) as count from recorded
  `);
  return stored === 1;
}
