/** The refunds that failed, as a top-up shows them. */
import { Type } from 'typebox';
import { type Fragment, micros, sql } from '../database.ts';

export const FailedRefund = Type.Object({ amountMicros: micros, message: Type.String() });

/** The newest refund of a top-up that failed, since nobody else hears of it. */
export const failedRefundOf = (topUpId: Fragment) => sql.fragment`(
  select json_build_object('amountMicros', r.amount_micros,
    'message', coalesce(r.failure_message, 'no reason given'))
  from farebox.reversals r
  where r.top_up_id = ${topUpId} and r.kind = 'refund' and r.status = 'failed'
  order by r.id desc limit 1
)`;
