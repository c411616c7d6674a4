-- What the keys of each budget and of all budgets below it spent, by tool and by developer. The usage of a budget is read from
-- these sums, so it takes no longer with many keys than with one. The trigger of functions/add_to_budget_spending.sql keeps
-- them at each change of the sums of keys, whichever release makes it.
-- Locks: SHARE ROW EXCLUSIVE on the sums of keys, so rollups wait until the migration is done. Charges and reads do not. The
-- previous release may run beside it.

lock table farebox.key_spending in share row exclusive mode;

create table farebox.budget_spending (
  amount_micros bigint not null,
  charges bigint not null,
  begins_at timestamptz not null,
  consumer_id uuid not null,
  budget int not null,
  ledger smallint not null,
  span text not null,
  grouped_by text not null,
  mark text not null,
  constraint budget_spending_pkey primary key (ledger, consumer_id, budget, grouped_by, span, begins_at, mark),
  constraint budget_spending_grouped_by_known check (grouped_by in ('tool', 'developer')),
  constraint budget_spending_span_known check (span in ('day', 'all'))
) with (fillfactor = 80);
comment on table farebox.budget_spending is
  'What the keys of a budget and of all below it spent: the sums of key_spending, by tool and by developer. A charge counts '
  'once in each of the two groupings.';
comment on column farebox.budget_spending.budget is 'The number of the node.';
comment on column farebox.budget_spending.mark is 'The name of a tool, or the number of a developer.';

insert into farebox.budget_spending
  (ledger, consumer_id, budget, grouped_by, span, begins_at, mark, amount_micros, charges)
select s.ledger, s.consumer_id, n.budget, g.grouped_by, s.span, s.begins_at, g.mark, sum(s.amount_micros), sum(s.charges)
from farebox.key_spending s
join farebox.spend_keys k on k.ledger = s.ledger and k.consumer_id = s.consumer_id and k.number = s.spend_key
cross join lateral unnest(k.path) as n (budget)
cross join lateral (values ('tool', s.tool), ('developer', s.developer::text)) as g (grouped_by, mark)
group by 1, 2, 3, 4, 5, 6, 7;
