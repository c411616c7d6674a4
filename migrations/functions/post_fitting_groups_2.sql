-- The charge statement for the usual case, in about two thirds of the work: all of a consumer's charges fit its balance
-- and its budgets, and none was made before. The caller groups the charges by consumer and adds them up, so that one
-- update per consumer both locks and debits it, and nothing is joined or sorted. Other consumers are not changed. Their
-- charges are decided one by one, in batches of their own: by post_entries_2.sql if one of them is by a spend key, else by
-- post_charges_2.sql.
-- Guarantees: those of post_charges_2.sql; it takes no node of a budget above a limit; a charge counts at its key's node
-- and at every node above, in this commit.
-- Locks, as everywhere: consumers by (ledger, id). Nodes are only changed under their consumer's lock.
-- Requires: groups in order of (ledger, consumer); for each charge the number of its group and the group's running total
-- up to and including it; no idempotency key twice in one call. In a batch with charges by spend keys, for each charge
-- the number of its key, 0 for a plain one, and for each node that a charge counts at its group and what is added to it,
-- no node twice; in any other, these arrays are empty, and a charge pays nothing for budgets. p_card: for each charge the
-- version of the rate card that priced it, 0 for none; empty if no charge has one.
-- Returns the balance after each charge, null for those that it left.
-- What keys spent is one row of key_spending_tail.
create or replace function farebox.post_fitting_groups_2(
  p_group_ledger smallint[], p_group_consumer uuid[], p_group_total bigint[],
  p_node_group int[], p_node_number int[], p_node_total bigint[],
  p_group int[], p_through bigint[], p_spend_key int[], p_id uuid[], p_developer int[], p_tool text[],
  p_amount bigint[], p_card smallint[], p_idempotency bigint[], p_fingerprint bigint[], p_metadata text[],
  p_receipt_key smallint, p_replay_from uuid, p_replay_to uuid
) returns bigint[]
language plpgsql volatile
-- A single plan of nested loops only: they lock consumers in the given order, and probe indexes for the reasons in
-- post_charges_2.sql.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  -- What each group's consumer had spent, and had available, before this call; null for a group that is left.
  v_spent bigint[] := array_fill(null::bigint, array[cardinality(p_group_total)]);
  v_available bigint[] := v_spent;
  -- Of each group, its consumer; null for a group that is left.
  v_debited uuid[] := p_group_consumer;
  -- Groups whose balance is below a threshold now.
  v_low int[] := '{}';
  -- When the current window of each unit began.
  v_began timestamptz[];
  v_counted int[];
  -- The times of the first and the last id.
  v_first timestamptz; v_last timestamptz;
  -- The UTC day of each id.
  v_days date[];
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

  if cardinality(p_node_group) > 0 then
    -- The clock is read under the locks, so of two charges of a consumer the later one reads the later time, and a
    -- window never turns back.
    v_began := farebox.windows_at(clock_timestamp());
    with counted as (
      update farebox.budgets b set used_micros = b.used_micros + n.total,
        window_used_micros = case when b.window_unit = 0 then 0
          when b.window_began < v_began[b.window_unit] then n.total else b.window_used_micros + n.total end,
        window_used_at_limit_micros =
          case when b.window_began < v_began[b.window_unit] then 0 else b.window_used_at_limit_micros end,
        window_from_micros =
          case when b.window_began < v_began[b.window_unit] then v_spent[n.grp] else b.window_from_micros end,
        window_began = greatest(b.window_began, v_began[b.window_unit])
      from unnest(p_node_group, p_node_number, p_node_total) with ordinality as n(grp, number, total, n)
      -- By `= any`, so that nodes are probed by their index however small the table was when the plan was made.
      where b.ledger = any (array[p_group_ledger[n.grp]]) and b.consumer_id = any (array[p_group_consumer[n.grp]])
        and b.number = any (array[n.number]) and v_spent[n.grp] is not null and not b.is_closed
        -- A limit that is null refuses nothing.
        and (b.used_micros + n.total > b.limit_micros) is not true
        and (n.total + case when b.window_began < v_began[b.window_unit] then 0 else b.window_used_micros end
          > b.window_limit_micros) is not true
      returning n.n::int
    )
    select coalesce(array_agg(n), '{}') into v_counted from counted;

    -- A node that refuses leaves all charges of its consumer, and what other nodes counted is taken back.
    if cardinality(v_counted) < cardinality(p_node_group) then
      for v_group in
        select distinct n.grp from unnest(p_node_group) with ordinality as n(grp, n)
        where v_spent[n.grp] is not null and n.n <> all (v_counted)
      loop
        update farebox.consumers set spent_micros = spent_micros - p_group_total[v_group]
        where ledger = p_group_ledger[v_group] and id = p_group_consumer[v_group];
        update farebox.budgets b set used_micros = b.used_micros - p_node_total[n],
          window_used_micros = case when b.window_unit = 0 then 0 else b.window_used_micros - p_node_total[n] end
        from unnest(v_counted) n
        where p_node_group[n] = v_group and b.ledger = any (array[p_group_ledger[v_group]])
          and b.consumer_id = any (array[p_group_consumer[v_group]]) and b.number = any (array[p_node_number[n]]);
        v_spent[v_group] := null;
        v_low := array_remove(v_low, v_group);
      end loop;
    end if;
  end if;

  insert into farebox.charges (amount_micros, spent_micros, balance_micros, idempotency_hash,
    request_fingerprint, id, consumer_id, developer, ledger, receipt_key, tool, metadata, origin)
  select r.amount, v_spent[r.grp] + r.through, v_available[r.grp] - r.through, r.idempotency,
    r.fingerprint, r.id, p_group_consumer[r.grp], r.developer, p_group_ledger[r.grp], p_receipt_key,
    r.tool, coalesce(r.metadata, ''),
    case when r.card > 0 then int4send(coalesce(r.spend_key, 0)) || int2send(r.card)
      when r.spend_key > 0 then int4send(r.spend_key) else '' end
  from unnest(p_group, p_through, p_spend_key, p_id, p_developer, p_tool, p_amount, p_card, p_idempotency,
    p_fingerprint, p_metadata)
    as r(grp, through, spend_key, id, developer, tool, amount, card, idempotency, fingerprint, metadata)
  where v_spent[r.grp] is not null;

  if found then
    insert into farebox.earnings_tail (ledger, developer, minute, tool, amount_micros, charges)
    select min(p_group_ledger[r.grp]), r.developer,
      date_bin('1 minute', uuid_extract_timestamp(r.id), 'epoch'), r.tool, sum(r.amount), count(*)
    from unnest(p_group, p_id, p_developer, p_tool, p_amount) as r(grp, id, developer, tool, amount)
    where v_spent[r.grp] is not null group by 2, 3, 4;

    if cardinality(p_node_group) > 0 then
      v_days := array_fill((v_first at time zone 'UTC')::date, array[cardinality(p_id)]);
      -- Only a flush across midnight pays for computing the day of each charge.
      if (v_last at time zone 'UTC')::date > v_days[1] then
        v_days := array(
          select (uuid_extract_timestamp(i.id) at time zone 'UTC')::date from unnest(p_id) with ordinality as i(id, n)
          order by i.n
        );
      end if;
      if array_position(v_spent, null) is not null then
        v_debited := array(
          select case when v_spent[g.n] is not null then g.consumer end
          from unnest(p_group_consumer) with ordinality as g(consumer, n) order by g.n
        );
      end if;
      insert into farebox.key_spending_tail
        (ledger, ledgers, consumers, charge_group, spend_keys, developers, tools, days, amounts)
      values
        (p_group_ledger[1], p_group_ledger, v_debited, p_group, p_spend_key, p_developer, p_tool, v_days, p_amount);
    end if;

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
