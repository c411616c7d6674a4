/**
 * The checks of budgets: what each node used, in total and in its window, that no limit was passed, and whole
 * trees.
 */
import { ARCHIVED_BEFORE } from '../charges/archived.ts';
import { holdIdOf, isOfKey, spendKeyOf } from '../charges/charge-origin.ts';
import { SPENT_BY_BUDGETS, SPENT_BY_KEYS } from '../budgets/usage.ts';
import { waitingSpending } from '../budgets/waiting-spending.ts';
import { sql, type Fragment } from '../database.ts';
import { isOpen } from '../holds/hold.ts';

/** Joins sums `s` and keys `k`. */
const ofKey = sql.fragment`k.ledger = s.ledger and k.consumer_id = s.consumer_id and k.number = s.spend_key`;
const keyNamed = sql.fragment`
  coalesce('key ' || k.id, 'key ' || s.spend_key || ' of consumer ' || s.consumer_id)
`;
const named = sql.fragment`
  coalesce('budget ' || d.id, 'budget ' || b.number || ' of consumer ' || b.consumer_id)
`;

/**
 * The nodes that each spend key counts at. Joined before the charges are, as PostgreSQL takes the three columns that
 * name a key for independent, expects hardly any charge, and would loop over all of them for each budget.
 */
const nodes = sql.fragment`
  nodes as materialized (
    select k.ledger, k.consumer_id, k.number as spend_key, b.number, b.window_unit, b.window_began, b.window_from_micros
    from farebox.spend_keys k
    cross join lateral unnest(k.path) as p (number)
    join farebox.budgets b on b.ledger = k.ledger and b.consumer_id = k.consumer_id and b.number = p.number
  )
`;

/**
 * What counts in the windows of a key's nodes: what was held, when the hold was placed (held_at), and the
 * rest, which is the last part of a charge and the first to be refunded, where the charge begins
 * (charged_from).
 */
const counted = sql.fragment`
  counted (ledger, consumer_id, spend_key, held_at, charged_from, micros) as (
    select c.ledger, c.consumer_id, c.spend_key, p.held_at, p.charged_from, p.micros
    from (
      select c.ledger, c.consumer_id, ${spendKeyOf('c')} as spend_key, h.placed_at, c.amount_micros,
        c.spent_micros - c.amount_micros as begins, coalesce(r.micros, 0) as refunded,
        case when h.id is null then c.amount_micros
          when h.overflow_charge = c.id then h.captured_micros - h.amount_micros else 0 end as excess
      from farebox.charges c
      left join farebox.holds h on h.ledger = c.ledger and h.consumer_id = c.consumer_id
        and h.id = ${holdIdOf('c')}
      left join (
        select ledger, consumer_id, charge_id, sum(amount_micros)::bigint as micros
        from farebox.charge_refunds group by 1, 2, 3
      ) r on r.ledger = c.ledger and r.consumer_id = c.consumer_id and r.charge_id = c.id
      where c.origin <> ''
    ) c
    cross join lateral (values
      (c.placed_at, null::bigint, c.amount_micros - c.excess - greatest(c.refunded - c.excess, 0)),
      (null, c.begins, greatest(c.excess - c.refunded, 0))
    ) as p (held_at, charged_from, micros)
    where p.micros <> 0
    union all
    select ledger, consumer_id, spend_key, placed_at, null, held_micros from farebox.holds
    where ${isOpen('holds')} and spend_key > 0
  )
`;

const ALL = sql.fragment`farebox.budgets`;
const OPEN = sql.fragment`(select * from farebox.budgets where not is_closed)`;

/** The checks of what is compared with the limits of these budgets. */
function figureChecks(budgets: Fragment) {
  return {
    'a budget used what its keys charged, less refunds, and what their holds reserve': sql.fragment`
      with ${nodes}, of_keys as (
        select ledger, consumer_id, spend_key, sum(micros) as micros
        from (
          select ledger, consumer_id, ${spendKeyOf('c')} as spend_key, amount_micros as micros
          from farebox.charges c where origin <> ''
          union all
          select ledger, consumer_id, spend_key, held_micros from farebox.holds where ${isOpen('holds')}
          union all
          select ledger, consumer_id, spend_key, micros from farebox.archived_key_spending
          union all
          select ledger, consumer_id, spend_key, -amount_micros from farebox.charge_refunds
          where spend_key is not null
        ) e group by 1, 2, 3
      ), sums as (
        select ledger, consumer_id, n.number, sum(k.micros) as micros
        from of_keys k join nodes n using (ledger, consumer_id, spend_key)
        group by 1, 2, 3
      )
      select ${named}, 'used ' || b.used_micros || ', charges and holds ' || coalesce(s.micros, 0)
      from ${budgets} b
      left join farebox.budget_details d using (ledger, consumer_id, number)
      left join sums s using (ledger, consumer_id, number)
      where b.used_micros <> coalesce(s.micros, 0)`,

    'a window counted what its keys charged and held since it began': sql.fragment`
      with ${nodes}, ${counted}, sums as (
        select ledger, consumer_id, n.number, sum(c.micros) as micros
        from counted c join nodes n using (ledger, consumer_id, spend_key)
        where n.window_unit > 0 and coalesce(c.held_at >= n.window_began, c.charged_from >= n.window_from_micros)
        group by 1, 2, 3
      )
      select ${named}, 'window ' || b.window_used_micros || ', charges and holds ' || coalesce(s.micros, 0)
      from ${budgets} b
      left join farebox.budget_details d using (ledger, consumer_id, number)
      left join sums s using (ledger, consumer_id, number)
      where b.window_used_micros <> coalesce(s.micros, 0)
        -- Nothing was charged since an older window began, and what it counted is archived.
        and b.window_began > ${ARCHIVED_BEFORE} + interval '1 day'
        -- What a window counted that is over limits nothing: the next charge begins another. Without one, its row stays forever.
        and (b.window_began < (farebox.windows_at(now()))[b.window_unit]) is not true`,

    // A limit may be set below what is used. Nothing is added from then on, so what was used then is the bound.
    'every budget is within the limits that applied': sql.fragment`
      select ${named}, 'used ' || b.used_micros || ' of ' || coalesce(b.limit_micros::text, 'any') || ', in its window '
        || b.window_used_micros || ' of ' || coalesce(b.window_limit_micros::text, 'any')
      from ${budgets} b
      left join farebox.budget_details d using (ledger, consumer_id, number)
      where b.used_micros > greatest(b.limit_micros, b.used_at_limit_micros) and b.limit_micros is not null
        or b.window_used_micros > greatest(b.window_limit_micros, b.window_used_at_limit_micros)
          and b.window_limit_micros is not null`,

    // A mark that was reached and is still armed made no event when it should have.
    'the next mark of a limit is a mark of that limit, above what is used': sql.fragment`
      select ${named}, l.scope || ': used ' || l.used || ' of ' || coalesce(l.limit_micros::text, 'any') || ', next mark '
        || l.notice_at
      from ${budgets} b
      left join farebox.budget_details d using (ledger, consumer_id, number)
      cross join lateral (values
        ('total', b.used_micros, b.limit_micros, b.notice_at),
        ('window', b.window_used_micros, b.window_limit_micros, b.window_notice_at)
      ) as l (scope, used, limit_micros, notice_at)
      where l.notice_at <= l.used
        or l.notice_at is not null
          and not exists (select from farebox.budget_marks(l.limit_micros) m where m.micros = l.notice_at)`,
  } as const;
}

/** A closed budget limits nothing, and nothing is computed from its figures. */
export const OPEN_BUDGET_CHECKS = figureChecks(OPEN);

export const BUDGET_CHECKS = {
  ...figureChecks(ALL),

  'a budget has a path from its root, and is closed in both of its rows': sql.fragment`
    select case when b.number is null then 'budget ' || d.id else ${named} end,
      'path ' || coalesce(d.path::text, 'none') || ', above it ' || coalesce(a.path::text, 'none') || ', closed '
      || coalesce(b.is_closed::text, 'nowhere') || ' and at ' || coalesce(d.closed_at::text, 'no time')
    from farebox.budgets b
    full join farebox.budget_details d using (ledger, consumer_id, number)
    left join farebox.budget_details a on a.ledger = d.ledger and a.consumer_id = d.consumer_id
      and a.number = d.path[cardinality(d.path) - 1]
    where (d.path = coalesce(a.path, '{}') || d.number and (cardinality(d.path) = 1 or a.number < d.number)
      and b.is_closed = (d.closed_at is not null)) is not true`,

  'an account knows whether the budget of a developer is closed': sql.fragment`
    select 'account ' || a.id, coalesce('closed ' || c.budgets, 'none is closed')
    from farebox.accounts a
    left join (
      select k.account_id as id, string_agg('budget ' || d.id, ', ' order by d.number) as budgets
      from farebox.spend_keys k
      join farebox.budget_details d on d.ledger = k.ledger and d.consumer_id = k.consumer_id and d.number = k.budget
      where k.developer is not null and d.closed_at is not null
      group by k.account_id
    ) c using (id)
    where a.blocks_developers <> (c.id is not null)`,

  'a spend key has the path of its budget': sql.fragment`
    select 'key ' || k.id, 'path ' || k.path::text || ', its budget has ' || coalesce(d.path::text, 'none')
    from farebox.spend_keys k
    left join farebox.budget_details d on d.ledger = k.ledger and d.consumer_id = k.consumer_id
      and d.number = k.budget
    where k.path is distinct from d.path`,

  'what a spend key paid or reserved names a key of that consumer': sql.fragment`
    select p.kind || ' ' || p.id, 'spend key ' || p.spend_key || coalesce(', its hold has ' || p.of_hold, '')
    from (
      select 'charge' as kind, c.id, c.ledger, c.consumer_id, ${spendKeyOf('c')} as spend_key, h.spend_key as of_hold
      from farebox.charges c
      left join farebox.holds h on h.ledger = c.ledger and h.consumer_id = c.consumer_id
        and h.id = ${holdIdOf('c')}
      where c.origin <> ''
      union all
      select 'hold', id, ledger, consumer_id, spend_key, null from farebox.holds where spend_key <> 0
    ) p
    left join farebox.spend_keys k on k.ledger = p.ledger and k.consumer_id = p.consumer_id
      and k.number = p.spend_key
    where p.spend_key <> 0 and k.number is null or p.of_hold <> p.spend_key`,

  'the daily spending of a key and its tail equal its charges': sql.fragment`
    select ${keyNamed}, tool || ' of developer ' || s.developer || ' on ' || day::date || ': ' || micros || ' micros and '
      || charges || ' charges too few'
    from (
      select ledger, consumer_id, spend_key, developer, tool, date_trunc('day', minute, 'UTC') as day,
        sum(amount_micros) as micros, sum(charges) as charges
      from (
        ${SPENT_BY_KEYS}
        union all
        select ledger, consumer_id, spend_key, developer, tool, minute, -amount_micros, -charges
        from (${waitingSpending()}) w where minute >= ${ARCHIVED_BEFORE}
        union all
        select ledger, consumer_id, spend_key, developer, tool, begins_at, -amount_micros, -charges
        from farebox.key_spending where span = 'day' and begins_at >= ${ARCHIVED_BEFORE}
      ) e group by 1, 2, 3, 4, 5, 6
    ) s left join farebox.spend_keys k on ${ofKey}
    where micros <> 0 or charges <> 0`,

  'the total spending of a key equals its daily spending': sql.fragment`
    select ${keyNamed}, tool || ' of developer ' || s.developer || ': ' || micros || ' micros and ' || charges
      || ' charges too few'
    from (
      select ledger, consumer_id, spend_key, developer, tool, sum(micros) as micros, sum(charges) as charges
      from (
        select ledger, consumer_id, spend_key, developer, tool, amount_micros as micros, charges
        from farebox.key_spending where span = 'day'
        union all
        select ledger, consumer_id, spend_key, developer, tool, -amount_micros, -charges
        from farebox.key_spending where span = 'all'
      ) e group by 1, 2, 3, 4, 5
    ) s left join farebox.spend_keys k on ${ofKey}
    where micros <> 0 or charges <> 0`,

  // Days of archived months cannot be computed again, but what each key spent in all can.
  'the total spending of a key and its tail equal what it charged, less refunds': sql.fragment`
    select ${keyNamed}, micros || ' micros too few'
    from (
      select ledger, consumer_id, spend_key, sum(micros) as micros
      from (
        select ledger, consumer_id, ${spendKeyOf('c')} as spend_key, amount_micros as micros from farebox.charges c
        where ${isOfKey('c')}
        union all
        select ledger, consumer_id, spend_key, -amount_micros from farebox.charge_refunds
        where spend_key is not null
        union all
        select ledger, consumer_id, spend_key, micros from farebox.archived_key_spending
        union all
        select ledger, consumer_id, spend_key, -amount_micros from farebox.key_spending where span = 'all'
        union all
        select ledger, consumer_id, spend_key, -amount_micros from (${waitingSpending()}) w
      ) e group by 1, 2, 3
    ) s left join farebox.spend_keys k on ${ofKey}
    where micros <> 0`,

  'the spending of a budget equals that of its keys': sql.fragment`
    select ${named}, b.span || ' by ' || b.grouped_by || ', ' || b.mark || ' from ' || b.begins_at || ': ' || b.micros
      || ' micros and ' || b.charges || ' charges too few'
    from (
      select ledger, consumer_id, budget as number, grouped_by, span, begins_at, mark, sum(amount_micros) as micros,
        sum(charges) as charges
      from (
        ${SPENT_BY_BUDGETS}
        union all
        select ledger, consumer_id, budget, grouped_by, span, begins_at, mark, -amount_micros, -charges
        from farebox.budget_spending
      ) e group by 1, 2, 3, 4, 5, 6, 7
    ) b left join farebox.budget_details d using (ledger, consumer_id, number)
    where micros <> 0 or charges <> 0`,
} as const;
