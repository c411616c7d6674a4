/** The oldest items of each kind that the backlog counts, for the operators' page. */
import { Type, type Static } from 'typebox';
import { micros, nullable, row, sql, type Connection } from '../database.ts';
import { TOPICS } from '../outbox.ts';
import { ARE_DUE, ARE_FAILING, ARE_PENDING, DISPUTED, OF_WEBHOOKS } from './backlog.ts';

const WaitingThing = Type.Object({
  /** As in the backlog. */
  what: Type.String(),
  /** The topic of a notice about the item. It says what `subjectId` is, and which workflow the item has. */
  topic: Type.Enum(TOPICS),
  subjectId: Type.String(),
  accountId: nullable(Type.String()),
  /** How a top-up is paid, what reverses it, the topic of a notice. Null: of an endpoint, its URL says more. */
  detail: nullable(Type.String()),
  /** The URL of a webhook endpoint. */
  url: nullable(Type.String()),
  amountMicros: nullable(micros),
  paymentIntentId: nullable(Type.String()),
  sessionId: nullable(Type.String()),
  since: Type.String(),
});
export type WaitingThing = Static<typeof WaitingThing>;

const thingRow = row(WaitingThing);

/**
 * At most `limit` of each kind, the oldest first. Leaves out differences, which the page lists separately,
 * and internal work (minutes to roll up, holds to release). Lists due events by endpoint.
 */
export async function listWaiting(
  connection: Connection,
  limit: number,
): Promise<readonly WaitingThing[]> {
  return connection.any(sql.type(thingRow)`
    (
      select 'top_ups_pending' as what, 'top_up' as topic, id as "subjectId", account_id as "accountId",
        case when automatic then 'automatic' else method end as detail, null as url, amount_micros as "amountMicros",
        payment_intent_id as "paymentIntentId", session_id as "sessionId", created_at as since
      from farebox.top_ups where ${ARE_PENDING} order by id limit ${limit}
    )
    union all
    (
      select 'top_ups_disputed', 'reversal_reported', t.id, t.account_id, r.kind, null, r.amount_micros,
        t.payment_intent_id, t.session_id, r.opened_at
      from ${DISPUTED} order by r.opened_at limit ${limit}
    )
    union all
    (
      select 'refunds', 'reversal_reported', t.id, t.account_id, r.kind, null, r.amount_micros, t.payment_intent_id,
        t.session_id, r.created_at
      from farebox.reversals r join farebox.top_ups t on t.id = r.top_up_id
      where r.status = 'requested' order by r.created_at limit ${limit}
    )
    union all
    (${notices('outbox', sql.fragment`not ${OF_WEBHOOKS}`, limit)})
    union all
    (${notices('webhooks', OF_WEBHOOKS, limit)})
    union all
    (
      select 'events', 'webhook_endpoint', e.id, e.account_id, null, e.url, null, null, null, d.since
      from (
        select d.endpoint_id, min(d.next_attempt_at) as since from farebox.webhook_deliveries d
        where ${ARE_DUE} group by d.endpoint_id order by since limit ${limit}
      ) d join farebox.webhook_endpoints e on e.id = d.endpoint_id
      order by d.since
    )
    union all
    (
      select 'failing_endpoints', 'webhook_endpoint', id, account_id, null, url, null, null, null, failing_since
      from farebox.webhook_endpoints where ${ARE_FAILING} order by failing_since limit ${limit}
    )
  `);
}

/** The first ones are found before their accounts are, by one probe for each. */
function notices(what: string, are: typeof OF_WEBHOOKS, limit: number) {
  return sql.fragment`
    select ${what}, o.topic, o.subject_id, coalesce(t.account_id, e.account_id, a.id), o.topic, e.url, t.amount_micros,
      t.payment_intent_id, t.session_id, o.created_at
    from (select * from farebox.outbox where ${are} order by id limit ${limit}) o
    left join farebox.top_ups t on t.id = o.subject_id
    left join farebox.webhook_endpoints e on e.id = o.subject_id
    left join farebox.accounts a on o.topic = 'auto_top_up' and a.consumer_id = o.subject_id
    order by o.id
  `;
}
