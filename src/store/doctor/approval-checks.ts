/**
 * The checks of approvals: that none is forgotten, that a raise applies, and that `once` was used once and as
 * allowed.
 */
import { ARCHIVED_BEFORE } from '../charges/archived.ts';
import { spendKeyOf } from '../charges/charge-origin.ts';
import { sql } from '../database.ts';

/** A relay starts the workflow within seconds, and the workflow records the expiry at once. */
const NOTED_WITHIN = sql.fragment`interval '10 minutes'`;

export const APPROVAL_CHECKS = {
  'every approval has a workflow and ends on time': sql.fragment`
    select 'approval ' || id, 'pending since ' || created_at || ', expires at ' || expires_at || ', '
      || coalesce('taken up at ' || begun_at, 'not taken up')
    from farebox.approvals
    where status = 'pending' and (expires_at < now() - ${NOTED_WITHIN}
      or begun_at is null and created_at < now() - ${NOTED_WITHIN})`,

  'a limit that an approval raised is the one that applies': sql.fragment`
    select 'approval ' || a.id, a.scope || ' raised to ' || coalesce(a.raised_to_micros::text, 'nothing')
      || ', the budget has ' || coalesce(l.micros::text, 'none')
    from farebox.approvals a
    left join farebox.budgets b on b.ledger = a.ledger and b.consumer_id = a.consumer_id and b.number = a.budget
    left join farebox.budget_details d on d.ledger = a.ledger and d.consumer_id = a.consumer_id
      and d.number = a.budget
    cross join lateral (
      select case a.scope when 'total' then b.limit_micros when 'window' then b.window_limit_micros
        else d.max_per_call_micros end as micros
    ) l
    where a.is_raise_in_force and l.micros is distinct from a.raised_to_micros`,

  'an approval of one call was used once, by a call that it allows': sql.fragment`
    select 'approval ' || a.id, 'used by ' || a.used_by || case when a.uses > 1 then ', as ' || a.uses - 1 || ' others'
      else ', which is not such a call' end
    from (
      select a.*, count(*) over (partition by a.used_by, a.budget, a.scope) as uses
      from farebox.approvals a where a.used_by is not null
    ) a
    where a.uses > 1 or a.decided_at > ${ARCHIVED_BEFORE} + interval '2 days' and not exists (
      select from farebox.charges c
      where c.id = a.used_by and c.consumer_id = a.consumer_id and c.developer = a.developer and c.tool = a.tool
        and c.amount_micros <= a.amount_micros and ${spendKeyOf('c')} = a.spend_key
      union all
      select from farebox.holds h
      where h.id = a.used_by and h.consumer_id = a.consumer_id and h.developer = a.developer and h.tool = a.tool
        and h.amount_micros <= a.amount_micros and h.spend_key = a.spend_key)`,
} as const;
