-- Charges of a tool are found by the minutes that hold some: an hour of a busy developer is thousands of
-- charges, and a tool may have one in each of many hours.

alter table farebox.earnings_tail rename column hour to minute;
comment on table farebox.earnings_tail is
  'One row for each developer, tool and minute (of the charges'' ids, UTC) of a flush.';

alter table farebox.earnings add column charged_minutes bigint not null default 0;
comment on column farebox.earnings.charged_minutes is
  'Of an hour: bit n is set when a charge was made in its minute n. Of other spans 0.';

-- What waits knows its hour only, so it is added to the sums, and then all hours learn their minutes.
with taken as (
  delete from farebox.earnings_tail returning *
)
insert into farebox.earnings as e (developer, span, tool, begins_at, amount_micros, charges)
select developer, span, tool, begins_at, sum(amount_micros), sum(charges)
from taken cross join lateral (
  values ('hour', minute), ('day', date_trunc('day', minute, 'UTC')), ('all', '-infinity'::timestamptz)
) as s (span, begins_at)
group by 1, 2, 3, 4
on conflict on constraint earnings_pkey do update
  set amount_micros = e.amount_micros + excluded.amount_micros, charges = e.charges + excluded.charges;

update farebox.earnings e set charged_minutes = m.minutes
from (
  select developer, tool, date_bin('1 hour', uuid_extract_timestamp(id), 'epoch') as hour,
    bit_or(1::int8 << extract(minute from uuid_extract_timestamp(id) at time zone 'UTC')::int) as minutes
  from farebox.charges group by 1, 2, 3
) m where e.developer = m.developer and e.span = 'hour' and e.tool = m.tool and e.begins_at = m.hour;

-- The charge statement: decides and writes a batch of charges in one round trip and one commit.
-- Guarantees: a consumer never overspends; a key that made a charge makes no second one; charges of one
-- consumer are decided in the order of the arrays; one refusal never touches its neighbours.
-- Asks of its caller: no idempotency key twice in one call.
-- Outcome: 'posted', 'replayed', 'insufficient', 'key_reused'. Of a replay, everything comes from its row.
create or replace function farebox.post_charges(
  p_ledger smallint[], p_consumer uuid[], p_id uuid[], p_developer int[], p_tool text[],
  p_amount bigint[], p_idempotency bigint[], p_fingerprint bigint[], p_metadata text[],
  p_receipt_key smallint, p_replay_from uuid, p_replay_to uuid
) returns table (
  ord int, outcome text, charge_id uuid, amount bigint, balance bigint, signed_by smallint
)
language plpgsql volatile
-- One plan for ever, and one that only probes indexes, whatever the statistics were when it was made: a
-- process keeps it for days, and a table that was empty at its start is not empty any more.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
  -- The locks first, in one order everywhere. The next statement has a new snapshot, so it sees what
  -- committed while this one waited; one statement for both would look in the past and charge twice.
  perform 1 from farebox.consumers c
    where (c.ledger, c.id) in (select * from unnest(p_ledger, p_consumer))
    order by c.ledger, c.id for update;

  return query
  with asked as (
    select * from unnest(p_ledger, p_consumer, p_id, p_developer, p_tool, p_amount, p_idempotency,
      p_fingerprint, p_metadata) with ordinality
      as r(ledger, consumer, id, developer, tool, amount, idempotency, fingerprint, metadata, ord)
  ),
  -- Charges made earlier with the same key. The hash names consumer and developer too, and to ask for
  -- these again would let the planner read all of a consumer's charges instead of probing the hash.
  -- `limit 1` changes no answer: it keeps the planner, who takes a young table for a small one, from
  -- reading all charges of the period at once. The bounds on ids keep the partitions of other times out.
  prior as (
    select a.ord, a.fingerprint = h.request_fingerprint as same, h.id, h.amount_micros,
      h.balance_micros, h.receipt_key
    from asked a cross join lateral (
      select * from farebox.charges
      where idempotency_hash = a.idempotency and (request_fingerprint # a.fingerprint) >> 40 = 0
        and id >= p_replay_from and id < p_replay_to
      limit 1
    ) h
    where a.idempotency is not null
  ),
  fresh as (
    select a.*, c.credited_micros - c.spent_micros - c.held_micros as available, c.spent_micros as spent,
      c.auto_top_up_below_micros as below
    from asked a join farebox.consumers c on c.ledger = a.ledger and c.id = a.consumer
    where not exists (select from prior p where p.ord = a.ord)
  ),
  -- Running totals decide who fits: accepted is where the total grows.
  totals as (
    select *, farebox.accepted_sum(amount, available) over (partition by consumer order by ord) as total
    from fresh
  ),
  decided as (
    select *, total > coalesce(lag(total) over (partition by consumer order by ord), 0) as accepted
    from totals
  ),
  moved as (
    update farebox.consumers c set spent_micros = c.spent_micros + d.total,
      auto_top_up_below_micros = case when not d.is_low then c.auto_top_up_below_micros end
    from (
      select ledger, consumer, max(total) as total,
        coalesce(min(available) - max(total) < min(below), false)
          or (min(below) is not null and bool_or(not accepted)) as is_low
      from decided group by 1, 2
    ) d
    where c.ledger = d.ledger and c.id = d.consumer and (d.total > 0 or d.is_low)
    returning c.id, d.is_low
  ),
  low as (
    insert into farebox.outbox (workflow, subject_id) select 'auto_top_up', id from moved where is_low
  ),
  posted as (
    insert into farebox.charges (amount_micros, spent_micros, balance_micros, idempotency_hash,
      request_fingerprint, id, consumer_id, developer, ledger, receipt_key, tool, metadata)
    select amount, spent + total, available - total, idempotency, fingerprint, id, consumer, developer,
      ledger, p_receipt_key, tool, coalesce(metadata, '')
    from decided where accepted
  ),
  earned as (
    insert into farebox.earnings_tail (ledger, developer, minute, tool, amount_micros, charges)
    select min(ledger), developer, date_bin('1 minute', uuid_extract_timestamp(id), 'epoch'), tool,
      sum(amount), count(*)
    from decided where accepted group by 2, 3, 4
  ),
  attributed as (
    insert into farebox.attribution_tail
      (ledgers, consumers, spent_before, charge_group, through, developers, amounts)
    select array_agg(ledger order by ord), array_agg(consumer order by ord),
      array_agg(spent + total - amount order by ord), array_agg(place order by ord),
      array_agg(amount order by ord), array_agg(developer order by ord), array_agg(amount order by ord)
    from (select *, (row_number() over (order by ord))::int as place from decided where accepted) p
    having count(*) > 0
  )
  select ord::int, case when accepted then 'posted' else 'insufficient' end, id, amount,
    available - total, p_receipt_key
  from decided
  union all
  select ord::int, case when same then 'replayed' else 'key_reused' end, id, amount_micros,
    balance_micros, receipt_key
  from prior;
end $$;

-- The usual case, in about two thirds of the work: all of a consumer's charges fit and none was made
-- before. The caller groups the charges by consumer and adds them up, so that one update a consumer both
-- locks and debits it and nothing is joined or sorted. A consumer for whom it is otherwise is left as it
-- was, its charges for farebox.post_charges to decide.
-- Guarantees as above. Asks of its caller: groups in order of (ledger, consumer), the order of locks; of
-- each charge its group's number and the group's running total up to and with it; no key twice.
-- Returns the balance after each charge, null for those that it left.
create or replace function farebox.post_fitting_charges(
  p_group_ledger smallint[], p_group_consumer uuid[], p_group_total bigint[],
  p_group int[], p_through bigint[], p_id uuid[], p_developer int[], p_tool text[],
  p_amount bigint[], p_idempotency bigint[], p_fingerprint bigint[], p_metadata text[],
  p_receipt_key smallint, p_replay_from uuid, p_replay_to uuid
) returns bigint[]
language plpgsql volatile
-- Nested loops alone: they probe indexes, and they lock consumers in the order in which these are given.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  -- Of each group as it was before this call; null for one that is left.
  v_spent bigint[] := array_fill(null::bigint, array[cardinality(p_group_total)]);
  v_available bigint[] := v_spent;
  v_low uuid[] := '{}';
  v_moved record;
  v_group int;
begin
  -- Debits every consumer whose charges all fit, and by that locks it.
  for v_moved in
    update farebox.consumers c set spent_micros = c.spent_micros + g.total
    from unnest(p_group_ledger, p_group_consumer, p_group_total) with ordinality
      as g(ledger, consumer, total, n)
    where c.ledger = g.ledger and c.id = g.consumer
      and g.total <= c.credited_micros - c.spent_micros - c.held_micros
    returning g.n, c.spent_micros - g.total as spent,
      c.credited_micros - c.spent_micros - c.held_micros + g.total as available,
      c.credited_micros - c.spent_micros - c.held_micros < c.auto_top_up_below_micros as is_low
  loop
    v_spent[v_moved.n] := v_moved.spent;
    v_available[v_moved.n] := v_moved.available;
    if v_moved.is_low then
      v_low := v_low || p_group_consumer[v_moved.n];
    end if;
  end loop;

  -- A new statement, so it sees every charge that was made while the update waited for its locks. A
  -- consumer with a key that made one gets back what it was debited above.
  for v_group in
    select distinct p_group[k.n]
    from unnest(p_idempotency, p_fingerprint) with ordinality as k(hash, fingerprint, n)
    cross join lateral (
      select from farebox.charges
      where idempotency_hash = k.hash and (request_fingerprint # k.fingerprint) >> 40 = 0
        and id >= p_replay_from and id < p_replay_to
      limit 1
    ) made
    where k.hash is not null
  loop
    update farebox.consumers set spent_micros = spent_micros - p_group_total[v_group]
    where ledger = p_group_ledger[v_group] and id = p_group_consumer[v_group]
      and v_spent[v_group] is not null;
    v_spent[v_group] := null;
    v_low := array_remove(v_low, p_group_consumer[v_group]);
  end loop;

  insert into farebox.charges (amount_micros, spent_micros, balance_micros, idempotency_hash,
    request_fingerprint, id, consumer_id, developer, ledger, receipt_key, tool, metadata)
  select r.amount, v_spent[r.grp] + r.through, v_available[r.grp] - r.through, r.idempotency,
    r.fingerprint, r.id, p_group_consumer[r.grp], r.developer, p_group_ledger[r.grp], p_receipt_key,
    r.tool, coalesce(r.metadata, '')
  from unnest(p_group, p_through, p_id, p_developer, p_tool, p_amount, p_idempotency, p_fingerprint,
    p_metadata)
    as r(grp, through, id, developer, tool, amount, idempotency, fingerprint, metadata)
  where v_spent[r.grp] is not null;

  if found then
    insert into farebox.earnings_tail (ledger, developer, minute, tool, amount_micros, charges)
    select min(p_group_ledger[r.grp]), r.developer,
      date_bin('1 minute', uuid_extract_timestamp(r.id), 'epoch'), r.tool, sum(r.amount), count(*)
    from unnest(p_group, p_id, p_developer, p_tool, p_amount) as r(grp, id, developer, tool, amount)
    where v_spent[r.grp] is not null group by 2, 3, 4;

    insert into farebox.attribution_tail
      (ledgers, consumers, spent_before, charge_group, through, developers, amounts)
    values
      (p_group_ledger, p_group_consumer, v_spent, p_group, p_through, p_developer, p_amount);
  end if;

  if cardinality(v_low) > 0 then
    insert into farebox.outbox (workflow, subject_id) select 'auto_top_up', unnest(v_low);
    update farebox.consumers c set auto_top_up_below_micros = null
    from unnest(p_group_ledger, p_group_consumer) as g(ledger, consumer)
    where g.consumer = any (v_low) and c.ledger = g.ledger and c.id = g.consumer;
  end if;

  return array(
    select case when v_spent[r.grp] is not null then v_available[r.grp] - r.through end
    from unnest(p_group, p_through) with ordinality as r(grp, through, ord) order by r.ord
  );
end $$;
