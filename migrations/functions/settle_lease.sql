-- Settles calls of a lease: each entry is a charge, taken from what the lease has left. Then, if asked, releases the rest.
-- Guarantees: an entry is charged once, even if it is sent again; entries are decided in order, and a refusal never
-- affects others; nothing is charged beyond the lease, nor after it expired; of racing settlements, releases and
-- expiries, the first to lock the hold wins.
-- Locks, as everywhere: the hold, then its consumer. Budgets are only changed under their consumer's lock.
-- Requires: no idempotency key twice in one call.
-- p_fence: null, or the fence that the lease must have. Otherwise nothing happens, and nothing is returned; the same
-- for a lease that does not exist. The caller repays debts in the same transaction if p_releases.
-- Outcome: 'done', 'replayed', 'key_reused', 'closed', 'unknown_tool', 'above_price', 'exceeds_lease'.
-- limit_micros: what is left for 'exceeds_lease', the price for 'above_price'.
create or replace function farebox.settle_lease(
  p_developer int, p_lease uuid, p_fence int, p_id uuid[], p_tool text[], p_amount bigint[], p_idempotency bigint[],
  p_fingerprint bigint[], p_metadata text[], p_releases boolean, p_receipt_key smallint, p_replay_from uuid,
  p_replay_to uuid
) returns table (
  ord int, outcome text, charge_id uuid, amount bigint, balance bigint, signed_by smallint, limit_micros bigint
)
language plpgsql volatile
-- A single plan of nested loops, for the reasons in post_charges_2.sql.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_lease record;
  v_ceiling bigint[]; v_prior_is_same boolean[]; v_prior_id uuid[]; v_prior_amount bigint[]; v_prior_balance bigint[];
  v_prior_key smallint[];
  r_outcome text[] := array_fill(null::text, array[cardinality(p_id)]);
  r_limit bigint[] := array_fill(null::bigint, array[cardinality(p_id)]);
  r_through bigint[] := r_limit;
  v_taken bigint := 0; v_let_go bigint := 0; v_left bigint; v_owed bigint; v_before bigint; v_balance bigint;
  v_captures int := 0;
  -- The times of the first and the last id.
  v_first timestamptz; v_last timestamptz;
begin
  select min(uuid_extract_timestamp(i.id)), max(uuid_extract_timestamp(i.id)) into v_first, v_last
  from unnest(p_id) as i(id);
  perform 1 from farebox.holds where developer = p_developer and id = p_lease for update;
  -- A new statement, so it sees what committed while the previous one waited for the lock.
  select h.ledger, h.consumer_id, h.held_micros, h.spend_key, h.placed_at,
    h.state = 0 and h.expires_at > now() as is_open, l.tools, l.highest_prices
  into v_lease
  from farebox.holds h join farebox.leases l on l.id = any (array[h.id])
  where h.developer = p_developer and h.id = p_lease and (p_fence is null or l.fence = p_fence);
  if not found then return; end if;
  v_left := v_lease.held_micros;

  -- `limit 1` and the bounds on ids are those of post_charges_2.sql.
  select array_agg(t.ceiling order by a.n), array_agg(p.is_same order by a.n), array_agg(p.id order by a.n),
    array_agg(p.amount_micros order by a.n), array_agg(p.balance_micros order by a.n), array_agg(p.receipt_key order by a.n)
  into v_ceiling, v_prior_is_same, v_prior_id, v_prior_amount, v_prior_balance, v_prior_key
  from unnest(p_tool, p_idempotency, p_fingerprint) with ordinality as a(tool, hash, fingerprint, n)
  left join lateral (
    select u.ceiling from unnest(v_lease.tools, v_lease.highest_prices) as u(tool, ceiling) where u.tool = a.tool
  ) t on true
  left join lateral (
    select x.request_fingerprint = a.fingerprint as is_same, x.id, x.amount_micros, x.balance_micros, x.receipt_key
    from farebox.charges x
    where x.idempotency_hash = a.hash and (x.request_fingerprint # a.fingerprint) >> 40 = 0
      and x.id >= p_replay_from and x.id < p_replay_to
    limit 1
  ) p on true;

  for i in 1 .. cardinality(p_id) loop
    r_outcome[i] := case
      when v_prior_is_same[i] then 'replayed'
      when not v_prior_is_same[i] then 'key_reused'
      when not v_lease.is_open then 'closed'
      when v_ceiling[i] is null then 'unknown_tool'
      when p_amount[i] > v_ceiling[i] then 'above_price'
      when p_amount[i] > v_left then 'exceeds_lease'
      else 'done' end;
    if r_outcome[i] = 'done' then
      v_left := v_left - p_amount[i];
      v_taken := v_taken + p_amount[i];
      v_captures := v_captures + 1;
      r_through[i] := v_taken;
    else
      r_limit[i] := case r_outcome[i] when 'exceeds_lease' then v_left when 'above_price' then v_ceiling[i] end;
    end if;
  end loop;
  if p_releases and v_lease.is_open then v_let_go := v_left; end if;

  if v_taken + v_let_go > 0 then
    update farebox.holds set held_micros = held_micros - v_taken - v_let_go,
      captured_micros = captured_micros + v_taken, captures = captures + v_captures,
      state = case when v_let_go > 0 then 2 when held_micros = v_taken then 1 else 0 end
    where developer = p_developer and id = p_lease;
    update farebox.consumers set spent_micros = spent_micros + v_taken,
      held_micros = held_micros - v_taken - v_let_go, reserved_micros = reserved_micros - v_taken - v_let_go,
      charged_at = greatest(charged_at, v_last),
      disorder = greatest(disorder, greatest(charged_at, v_last) - v_first)
    where ledger = v_lease.ledger and id = v_lease.consumer_id
    returning spent_micros - v_taken, credited_micros - spent_micros - held_micros - v_let_go into v_before, v_balance;
    select coalesce(sum(debt_micros), 0) into v_owed from farebox.reversals
    where ledger = v_lease.ledger and consumer_id = v_lease.consumer_id and debt_micros > 0;
    v_balance := greatest(v_balance - v_owed, 0);
  end if;
  if v_let_go > 0 then
    update farebox.leases set released_micros = v_let_go where id = p_lease;
    perform farebox.give_back_to_budgets(array[v_lease.ledger], array[v_lease.consumer_id], array[v_lease.spend_key],
      array[v_let_go], array[v_lease.placed_at], array[null::bigint]);
  end if;

  if v_captures > 0 then
    with made as (
      select a.*, (row_number() over (order by a.n))::int as place
      from unnest(p_id, p_tool, p_amount, r_through, p_idempotency, p_fingerprint, p_metadata) with ordinality
        as a(id, tool, amount, through, hash, fingerprint, metadata, n)
      where a.through is not null
    ), charged as (
      insert into farebox.charges (amount_micros, spent_micros, balance_micros, idempotency_hash,
        request_fingerprint, id, consumer_id, developer, ledger, receipt_key, tool, metadata, origin)
      select a.amount, v_before + a.through, v_balance, a.hash, a.fingerprint, a.id, v_lease.consumer_id, p_developer,
        v_lease.ledger, p_receipt_key, a.tool, coalesce(a.metadata, ''),
        int4send(v_lease.spend_key) || '\x0000'::bytea || uuid_send(p_lease)
      from made a
    ), earned as (
      insert into farebox.earnings_tail
        (ledger, developer, minute, tool, amount_micros, charges, consumer_id, spend_key)
      select v_lease.ledger, p_developer, date_bin('1 minute', uuid_extract_timestamp(a.id), 'epoch'), a.tool,
        sum(a.amount), count(*), v_lease.consumer_id, v_lease.spend_key
      from made a group by 3, 4
    )
    insert into farebox.attribution_tail
      (ledgers, consumers, spent_before, charge_group, through, developers, amounts)
    select array[v_lease.ledger], array[v_lease.consumer_id], array[v_before], array_agg(1 order by a.n),
      array_agg(a.through order by a.n), array_agg(p_developer order by a.n), array_agg(a.amount order by a.n)
    from made a;
  end if;

  return query
  select a.n::int, a.outcome, coalesce(a.prior_id, a.id), coalesce(a.prior_amount, a.amount),
    coalesce(a.prior_balance, v_balance), coalesce(a.prior_key, p_receipt_key), a.limited
  from unnest(r_outcome, p_id, p_amount, v_prior_id, v_prior_amount, v_prior_balance, v_prior_key, r_limit)
    with ordinality as a(outcome, id, amount, prior_id, prior_amount, prior_balance, prior_key, limited, n);
end $$;
