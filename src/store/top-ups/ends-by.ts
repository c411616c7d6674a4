/** When a pending top-up ends at the latest while everything works. */
import { sql, type Fragment } from '../database.ts';

/** A bank debit that a checkout started may take two weeks to settle. */
const SETTLES_WITHIN = sql.fragment`interval '16 days'`;
/** A checkout is open for a day, and a cardholder has a day to confirm a payment at the bank. */
const PAID_WITHIN = sql.fragment`interval '24 hours'`;

/**
 * The time at which a top-up of the table named `t` has to end. Steps take seconds, so one that has nothing for its
 * payer yet has been due since it was requested.
 */
export function endsBy(t: string): Fragment {
  const of = (column: string) => sql.identifier([t, column]);
  return sql.fragment`
    case when ${of('under_way_at')} is not null then ${of('created_at')} + ${SETTLES_WITHIN}
      when ${of('session_id')} is null and ${of('authentication_asked_at')} is null then ${of('created_at')}
      else coalesce(${of('session_expires_at')}, ${of('created_at')} + ${PAID_WITHIN}) end
  `;
}
