-- For the release before this one, which calls it while this one rolls out; post_fitting_groups.sql replaces it.
-- The charge statement for the usual case, in about two thirds of the work: all of a consumer's charges fit and none
-- was made before. The caller groups the charges by consumer and adds them up, so that one update per consumer both
-- locks and debits it, and nothing is joined or sorted. Other consumers are not changed; farebox.post_charges decides
-- their charges.
-- Guarantees: those of post_charges.sql.
-- Requires: groups in order of (ledger, consumer), the order of locks; for each charge the number of its group and the
-- group's running total up to and including it; no idempotency key twice in one call.
-- Returns the balance after each charge, null for those it did not decide.
create or replace function farebox.post_fitting_charges(
  p_group_ledger smallint[], p_group_consumer uuid[], p_group_total bigint[],
  p_group int[], p_through bigint[], p_id uuid[], p_developer int[], p_tool text[],
  p_amount bigint[], p_idempotency bigint[], p_fingerprint bigint[], p_metadata text[],
  p_receipt_key smallint, p_replay_from uuid, p_replay_to uuid
) returns bigint[]
language plpgsql volatile
-- A single plan of nested loops only: they lock consumers in the given order, and probe indexes for the reasons in
-- post_charges.sql.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  -- For each group, the counter before this call; null for a group that is left to post_charges.
  v_spent bigint[] := array_fill(null::bigint, array[cardinality(p_group_total)]);
  v_available bigint[] := v_spent;
  -- The times of the first and the last id.
  v_first timestamptz; v_last timestamptz;
  -- Groups whose balance is below a threshold now.
  v_low int[] := '{}';
  v_moved record;
  v_group int;
begin
  select min(uuid_extract_timestamp(i.id)), max(uuid_extract_timestamp(i.id)) into v_first, v_last
  from unnest(p_id) as i(id);
  -- Debits, and so locks, every consumer whose charges all fit.
  for v_moved in
    update farebox.consumers c set spent_micros = c.spent_micros + g.total,
      charged_at = greatest(c.charged_at, v_last),
      disorder = greatest(c.disorder, greatest(c.charged_at, v_last) - v_first)
    from unnest(p_group_ledger, p_group_consumer, p_group_total) with ordinality
      as g(ledger, consumer, total, n)
    where c.ledger = any (array[g.ledger]) and c.id = any (array[g.consumer])
      and g.total <= c.credited_micros - c.spent_micros - c.held_micros
    returning g.n, c.spent_micros - g.total as spent,
      c.credited_micros - c.spent_micros - c.held_micros + g.total as available,
      c.credited_micros - c.spent_micros - c.held_micros
        < greatest(c.auto_top_up_below_micros, c.notice_below_micros) as is_low
  loop
    v_spent[v_moved.n] := v_moved.spent;
    v_available[v_moved.n] := v_moved.available;
    if v_moved.is_low then
      v_low := v_low || v_moved.n::int;
    end if;
  end loop;

  -- A new statement, so it sees every charge made while the update waited for its locks. If a key has already made a
  -- charge, its consumer's debit from above is undone.
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
    v_low := array_remove(v_low, v_group);
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
    perform farebox.note_crossings(array(select p_group_ledger[n] from unnest(v_low) n),
      array(select p_group_consumer[n] from unnest(v_low) n), array_fill(false, array[cardinality(v_low)]));
  end if;

  return array(
    select case when v_spent[r.grp] is not null then v_available[r.grp] - r.through end
    from unnest(p_group, p_through) with ordinality as r(grp, through, ord) order by r.ord
  );
end $$;
