-- The charge statement: decides and writes a batch of charges in one round trip and one commit.

-- What is accepted so far of a consumer's charges, in order of arrival: one that does not fit is left
-- out, and a later smaller one may still fit.
create function farebox.accept_if_fits(accepted bigint, amount bigint, available bigint)
returns bigint language sql immutable parallel safe
as $$ select case when amount <= available - accepted then accepted + amount else accepted end $$;

create aggregate farebox.accepted_sum(amount bigint, available bigint) (
  sfunc = farebox.accept_if_fits, stype = bigint, initcond = '0'
);

-- Guarantees: a consumer never overspends; a key that made a charge makes no second one; charges of one
-- consumer are decided in the order of the arrays; one refusal never touches its neighbours.
-- Asks of its caller: no idempotency hash twice in one call.
-- Outcome: 'posted', 'replayed', 'insufficient', 'key_reused'. Of a replay, everything comes from its row.
create function farebox.post_charges(
  p_ledger smallint[], p_consumer uuid[], p_id uuid[], p_developer uuid[], p_tool text[],
  p_amount bigint[], p_idempotency uuid[], p_fingerprint bigint[], p_metadata text[],
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
      where idempotency_hash = a.idempotency and id >= p_replay_from and id < p_replay_to
      limit 1
    ) h
    where a.idempotency is not null
  ),
  fresh as (
    select a.*, c.credited_micros - c.spent_micros - c.held_micros as available, c.spent_micros as spent
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
    update farebox.consumers c set spent_micros = c.spent_micros + d.total
    from (select ledger, consumer, max(total) as total from decided where accepted group by 1, 2) d
    where c.ledger = d.ledger and c.id = d.consumer
  ),
  posted as (
    insert into farebox.charges (amount_micros, spent_micros, balance_micros, request_fingerprint, id,
      consumer_id, developer_id, idempotency_hash, ledger, receipt_key, tool, metadata)
    select amount, spent + total, available - total, fingerprint, id, consumer, developer, idempotency,
      ledger, p_receipt_key, tool, metadata::jsonb
    from decided where accepted
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
-- each charge its group's number and the group's running total up to and with it; no hash twice.
-- Returns the balance after each charge, null for those that it left.
create function farebox.post_fitting_charges(
  p_group_ledger smallint[], p_group_consumer uuid[], p_group_total bigint[],
  p_group int[], p_through bigint[], p_id uuid[], p_developer uuid[], p_tool text[],
  p_amount bigint[], p_idempotency uuid[], p_fingerprint bigint[], p_metadata text[],
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
      c.credited_micros - c.spent_micros - c.held_micros + g.total as available
  loop
    v_spent[v_moved.n] := v_moved.spent;
    v_available[v_moved.n] := v_moved.available;
  end loop;

  -- A new statement, so it sees every charge that was made while the update waited for its locks. A
  -- consumer with a key that made one gets back what it was debited above.
  for v_group in
    select distinct p_group[k.n] from unnest(p_idempotency) with ordinality as k(hash, n)
    cross join lateral (
      select from farebox.charges
      where idempotency_hash = k.hash and id >= p_replay_from and id < p_replay_to
      limit 1
    ) made
    where k.hash is not null
  loop
    update farebox.consumers set spent_micros = spent_micros - p_group_total[v_group]
    where ledger = p_group_ledger[v_group] and id = p_group_consumer[v_group]
      and v_spent[v_group] is not null;
    v_spent[v_group] := null;
  end loop;

  insert into farebox.charges (amount_micros, spent_micros, balance_micros, request_fingerprint, id,
    consumer_id, developer_id, idempotency_hash, ledger, receipt_key, tool, metadata)
  select r.amount, v_spent[r.grp] + r.through, v_available[r.grp] - r.through, r.fingerprint, r.id,
    p_group_consumer[r.grp], r.developer, r.idempotency, p_group_ledger[r.grp], p_receipt_key, r.tool,
    r.metadata::jsonb
  from unnest(p_group, p_through, p_id, p_developer, p_tool, p_amount, p_idempotency, p_fingerprint,
    p_metadata)
    as r(grp, through, id, developer, tool, amount, idempotency, fingerprint, metadata)
  where v_spent[r.grp] is not null;

  return array(
    select case when v_spent[r.grp] is not null then v_available[r.grp] - r.through end
    from unnest(p_group, p_through) with ordinality as r(grp, through, ord) order by r.ord
  );
end $$;
