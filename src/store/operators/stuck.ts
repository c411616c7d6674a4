/** Work that is stuck: top-ups and refunds that have not finished, and notices that could not be delivered. */
import { Type, type Static } from 'typebox';
import { micros, nullable, row, sql, type Connection } from '../database.ts';
import { endsBy } from '../top-ups/ends-by.ts';

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

const TOP_UP_IS_STUCK = sql.fragment`t.status = 'pending' and ${endsBy('t')} < ${LATE}`;
const REFUND_IS_STUCK = sql.fragment`r.status = 'requested' and r.created_at < ${LATE}`;
/** Its age counts too: while Temporal is away, a few seconds are enough for the attempts. */
const NOTICE_IS_STUCK = sql.fragment`
  o.attempts >= ${ATTEMPTS} and o.created_at < ${LATE} and o.topic <> 'auto_top_up'
`;

/** Since when each waits. */
export const STUCK_SINCE = sql.fragment`
  select t.created_at as since from farebox.top_ups t where ${TOP_UP_IS_STUCK}
  union all
  select r.created_at from farebox.reversals r where ${REFUND_IS_STUCK}
  union all
  select o.created_at from farebox.outbox o where ${NOTICE_IS_STUCK}
`;

/** The oldest of each kind, at most `limit` of each. */
export async function listStuck(connection: Connection, limit: number): Promise<readonly Stuck[]> {
  return connection.any(sql.type(stuckRow)`
    (
      select 'top_up' as kind, t.method as detail, t.id as "subjectId", t.account_id as "accountId",
        t.amount_micros as "amountMicros", t.payment_intent_id as "paymentIntentId", t.created_at as since
      from farebox.top_ups t
      where ${TOP_UP_IS_STUCK}
      order by t.id limit ${limit}
    )
    union all
    (
      select 'refund', 'requested', r.top_up_id, t.account_id, r.amount_micros, t.payment_intent_id,
        r.created_at
      from farebox.reversals r join farebox.top_ups t on t.id = r.top_up_id
      where ${REFUND_IS_STUCK}
      order by r.created_at limit ${limit}
    )
    union all
    (
      select 'notice', o.topic, o.subject_id, t.account_id, t.amount_micros, t.payment_intent_id,
        o.created_at
      from farebox.outbox o left join farebox.top_ups t on t.id = o.subject_id
      where ${NOTICE_IS_STUCK}
      order by o.id limit ${limit}
    )
  `);
}
