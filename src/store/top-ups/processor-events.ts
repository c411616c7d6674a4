/**
 * The inbox of the payment processor's events: kept before they are acknowledged, unique by id for
 * ever, handed to workflows afterwards by a relay that may die at any point.
 */
import { Type, type Static } from 'typebox';
import { row, sql, type Connection } from '../database.ts';

/** Relays listen here; the payload is empty. */
export const EVENTS_CHANNEL = 'farebox_processor_events';

export interface ProcessorEvent {
  readonly id: string;
  readonly type: string;
  readonly objectId: string | undefined;
  /** What the event says of itself; neither need name anything that we know. */
  readonly topUpId: string | undefined;
  readonly paymentIntentId: string | undefined;
  /** Whether a workflow should hear of events of this type. */
  readonly concernsTopUp: boolean;
}

const WaitingEvent = Type.Object({
  eventId: Type.String(),
  type: Type.String(),
  attempts: Type.Integer(),
  topUpId: Type.String(),
});

export type WaitingEvent = Static<typeof WaitingEvent>;

const waitingRow = row(WaitingEvent);

/**
 * Stores an event, once, and wakes the relays. One that concerns no top-up of ours is stored as handed
 * over, since there is nobody to hand it to.
 */
export async function recordProcessorEvent(
  connection: Connection,
  event: ProcessorEvent,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    with stored as (
      insert into farebox.processor_events (id, type, object_id, top_up_id, handed_over_at)
      select ${event.id}, ${event.type}, ${event.objectId ?? null}, t.id,
        case when t.id is null or not ${event.concernsTopUp}::bool then now() end
      from (values (1)) as always
      left join farebox.top_ups t
        on t.id = ${event.topUpId ?? null}::uuid
        or t.payment_intent_id = ${event.paymentIntentId ?? null}
        or t.session_id = ${event.objectId ?? null}
      limit 1
      on conflict (id) do nothing
      returning handed_over_at
    )
    select pg_notify(${EVENTS_CHANNEL}, '') from stored where handed_over_at is null
  `);
}

/**
 * Takes events that wait, the longest waiting first. For `leaseMs` no other relay takes them; if this
 * one dies meanwhile, they come up again after that.
 */
export async function takeProcessorEvents(
  connection: Connection,
  limit: number,
  leaseMs: number,
): Promise<readonly WaitingEvent[]> {
  return connection.any(sql.type(waitingRow)`
    update farebox.processor_events
    set attempts = attempts + 1, next_attempt_at = now() + ${leaseMs}::int8 * interval '1 ms'
    where id in (
      select id from farebox.processor_events
      where handed_over_at is null and next_attempt_at <= now()
      order by next_attempt_at limit ${limit} for update skip locked
    )
    returning id as "eventId", type, attempts, top_up_id as "topUpId"
  `);
}

export async function markHandedOver(
  connection: Connection,
  eventIds: readonly string[],
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.processor_events set handed_over_at = now()
    where id = any(${sql.array(eventIds, 'text')}) and handed_over_at is null
  `);
}

export async function postponeProcessorEvent(
  connection: Connection,
  eventId: string,
  delayMs: number,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.processor_events set next_attempt_at = now() + ${delayMs}::int8 * interval '1 ms'
    where id = ${eventId} and handed_over_at is null
  `);
}
