/**
 * Ends approvals that need no answer any more: they have expired, the key that asked cannot pay any more, or nothing
 * refuses the call now because the balance was topped up, a window turned or a budget was changed. Any number of
 * processes may do this at once.
 */
import { balanceOf } from '../balance/consumers.ts';
import { windowUsedNow } from '../budgets/budget.ts';
import { durationOf, type Connection, idRow, sql } from '../database.ts';

/**
 * Whether a row `a` is about the budget of a developer for keys of the account, which no longer has a daily
 * limit for each.
 */
const isWithoutDayLimit = sql.fragment`
  exists (
    select from farebox.spend_keys k join farebox.accounts o on o.id = k.account_id
    where k.ledger = a.ledger and k.consumer_id = a.consumer_id and k.number = a.spend_key
      and k.developer is not null and o.developer_day_micros is null)
`;

/**
 * Whether the spend key of a row `a` has ended: by itself, or with a budget that was closed. A budget that has only
 * expired can be given a later expiry.
 */
const hasKeyEnded = sql.fragment`
  exists (
    select from farebox.spend_keys k
    where k.ledger = a.ledger and k.consumer_id = a.consumer_id and k.number = a.spend_key
      and (k.revoked_at is not null or k.expires_at <= now() or exists (
        select from farebox.budget_details d
        where d.ledger = k.ledger and d.consumer_id = k.consumer_id and d.number = any (k.path)
          and d.closed_at is not null)))
`;

/** Whether the call of a row `a` would be allowed by what refused it. */
const isResolved = sql.fragment`
  case a.code
    when 'insufficient_balance' then exists (
      select from farebox.consumers c where c.ledger = a.ledger and c.id = a.consumer_id
        and ${balanceOf('c')} >= a.amount_micros)
    when 'approval_required' then exists (
      select from farebox.budget_details d
      where d.ledger = a.ledger and d.consumer_id = a.consumer_id and d.number = a.budget
        and (not d.approve_developers or a.developer_id = any (d.approved_developers)))
    else ${isWithoutDayLimit} or exists (
      select from farebox.budgets b
      join farebox.budget_details d on d.ledger = b.ledger and d.consumer_id = b.consumer_id and d.number = b.number
      cross join (select farebox.windows_at(now()) as began) w
      where b.ledger = a.ledger and b.consumer_id = a.consumer_id and b.number = a.budget
        and case a.scope
          when 'total' then (b.used_micros + a.amount_micros > b.limit_micros) is not true
          when 'window' then (${windowUsedNow} + a.amount_micros > b.window_limit_micros) is not true
          else (a.amount_micros > d.max_per_call_micros) is not true end)
  end
`;

/** Which pending approvals: these ids, all of one account, or those that have been overdue for this long. */
export type Settled =
  | { readonly ids: readonly string[] }
  | { readonly accountId: string }
  | { readonly overdueByMs: number };

/** Posts a notice for the workflow of each one that ended. Returns their number. */
export async function settleApprovals(connection: Connection, which: Settled): Promise<number> {
  const asked =
    'ids' in which
      ? sql.fragment`a.id = any (${sql.array(which.ids, 'uuid')})`
      : 'accountId' in which
        ? sql.fragment`a.account_id = ${which.accountId}`
        : sql.fragment`a.expires_at < now() - ${durationOf(which.overdueByMs)}`;
  const ended = await connection.anyFirst(sql.type(idRow)`
    with free as materialized (
      select a.id, e.is_over from farebox.approvals a
      cross join lateral (select a.expires_at <= now() or ${hasKeyEnded} as is_over) e
      where ${asked} and a.status = 'pending' and (e.is_over or ${isResolved})
      for update of a skip locked
    ), ended as (
      update farebox.approvals a set decided_at = clock_timestamp(),
        status = case when free.is_over then 'expired' else 'approved' end,
        decision = case when free.is_over then null
          when a.code = 'insufficient_balance' then 'top_up' else 'resolved' end
      from free where a.id = free.id
      returning a.ledger, a.id
    ), told as (
      insert into farebox.outbox (ledger, topic, subject_id) select ledger, 'approval', id from ended
    )
    select id from ended
  `);
  return ended.length;
}
