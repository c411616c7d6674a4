/** Work that is stuck: top-ups and refunds that have not finished, and notices that could not be delivered. */
import { Type, type Static } from 'typebox';
import { micros, nullable, row, sql, type Connection } from '../database.ts';
import { CHECKOUT_ENDS_WITHIN } from '../doctor/delivery-checks.ts';

const Stuck = Type.Object({
  kind: Type.Enum(['top_up', 'refund', 'notice']),
  /** For a notice, its topic. */
  detail: Type.String(),
  subjectId: Type.String(),
  accountId: nullable(Type.String()),
  amountMicros: nullable(micros),
  paymentIntentId: nullable(Type.String()),
  since: Type.String(),
});
export type Stuck = Static<typeof Stuck>;

const stuckRow = row(Stuck);

/** Longer than any step takes while everything works. */
const LATE = sql.fragment`now() - interval '15 minutes'`;
const ATTEMPTS = 3;

/** The oldest of each kind, at most `limit` of each. */
export async function listStuck(connection: Connection, limit: number): Promise<readonly Stuck[]> {
  return connection.any(sql.type(stuckRow)`
    (
      select 'top_up' as kind, t.method as detail, t.id as "subjectId", t.account_id as "accountId",
        t.amount_micros as "amountMicros", t.payment_intent_id as "paymentIntentId", t.created_at as since
      from farebox.top_ups t
      where t.status = 'pending' and case
        when t.under_way_at is not null then t.created_at + ${CHECKOUT_ENDS_WITHIN}
        when t.session_id is null and t.authentication_asked_at is null then t.created_at
        else coalesce(t.session_expires_at, t.created_at + interval '24 hours') end < ${LATE}
      order by t.id limit ${limit}
    )
    union all
    (
      select 'refund', 'requested', r.top_up_id, t.account_id, r.amount_micros, t.payment_intent_id,
        r.created_at
      from farebox.reversals r join farebox.top_ups t on t.id = r.top_up_id
      where r.status = 'requested' and r.created_at < ${LATE}
      order by r.created_at limit ${limit}
    )
    union all
    (
      select 'notice', o.topic, o.subject_id, t.account_id, t.amount_micros, t.payment_intent_id,
        o.created_at
      from farebox.outbox o left join farebox.top_ups t on t.id = o.subject_id
      where o.attempts >= ${ATTEMPTS} and o.topic <> 'auto_top_up'
      order by o.id limit ${limit}
    )
  `);
}
