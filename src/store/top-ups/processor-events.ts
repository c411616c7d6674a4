/**
 * The log of the payment processor's events: each is kept before it is acknowledged, unique by its id for ever,
 * together with the notice for the workflow of the top-up that it is about.
 */
import { sql, type Connection } from '../database.ts';
import type { Topic } from '../outbox.ts';

export interface ProcessorEvent {
  readonly id: string;
  readonly type: string;
  readonly objectId: string | undefined;
  /** What the event says of itself; neither need name anything that we know. */
  readonly topUpId: string | undefined;
  readonly paymentIntentId: string | undefined;
  /** What the top-up's workflow should hear. Undefined: events of this type change nothing for it. */
  readonly topic: Extract<Topic, 'payment_reported' | 'reversal_reported'> | undefined;
}

/** Keeps the event, once, and in the same statement the notice, if it is about a top-up of ours. */
export async function recordProcessorEvent(
  connection: Connection,
  event: ProcessorEvent,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    with recorded as (
      insert into farebox.processor_events (id, type, object_id, top_up_id)
      select ${event.id}, ${event.type}, ${event.objectId ?? null}, t.id
      from (values (1)) as always
      left join farebox.top_ups t
        on t.id = ${event.topUpId ?? null}::uuid
        or t.payment_intent_id = ${event.paymentIntentId ?? null}
        or t.session_id = ${event.objectId ?? null}
      limit 1
      on conflict (id) do nothing
      returning top_up_id
    )
    insert into farebox.outbox (topic, subject_id)
    select topic, top_up_id from recorded, (values (${event.topic ?? null}::text)) as about (topic)
    where topic is not null and top_up_id is not null
  `);
}
