-- Places, captures, releases and extends holds, and makes charges, one by one: any number of entries in one statement
-- and one commit. It decides what post_fitting_groups_2.sql left, if a charge by a spend key is among it.
-- Guarantees: a consumer never overspends, and no charge or hold takes a budget above a limit without an approval; of
-- racing captures, releases and expiries, the first to lock the hold wins; a capture after expires_at loses, even before
-- the hold was swept; an idempotency key acts once; entries are decided in the order of the arrays, and a refusal never
-- affects other entries. p_card is the version of the rate card that priced the entry, 0 for none.
-- Locks, as everywhere: holds by (ledger, id), then consumers by (ledger, id). Budgets are only changed under their
-- consumer's lock, so they need no locks of their own.
-- Requires: no idempotency key twice in one call.
-- p_kind: 1 place, 2 capture, 3 release, 4 extend, 5 charge. p_id is the id of the hold that is placed or of the charge
-- that is made; p_hold the hold that is captured, released or extended. p_ledger, p_consumer and p_spend_key (0 for a
-- key of the account) are set for placed holds and charges. An amount of 0 captures everything that is left. p_over
-- decides about an amount that exceeds the hold: 0 refuses it, 1 caps it at what is left, 2 takes the excess from the
-- balance and the budgets, if the owner would still let the key pay (may_exceed_hold.sql). For placed holds and charges
-- it is 0, or 3 when memory found that a budget refuses them unless its owner approved: what memory checks of a budget
-- is then checked here.
-- A one-time approval (farebox.approvals) lets one charge or hold of its key, developer and tool, up to its amount, pass
-- only what was asked: a limit of its budget, or its approval of developers. The one that needs it uses it up, in this commit.
-- A hold counts at its key's budgets when it is placed; its captures count only what exceeds it. Released money is
-- given back to the budgets, and to a window only if that window counted the hold (give_back_to_budgets.sql).
-- Money that is released while the consumer has a debt repays the debt first. The caller does that in the same
-- transaction, and announces it with p_settles_debts; without it, such an entry and the consumer's later ones are 'owing'.
-- Outcome: 'done', 'replayed', 'owing', 'insufficient', 'limit_reached', 'approval_required', 'key_closed',
-- 'exceeds_hold', 'hold_closed', 'unknown_hold', 'key_reused'.
-- amount: the amount placed, charged or captured; for 'insufficient', what the balance had to cover; for 'exceeds_hold',
-- what is left. The columns from hold_id on show the hold after the call. Those from budget_id on are set for
-- 'limit_reached'; for 'approval_required', only the budget is.
create or replace function farebox.post_entries_2(
  p_kind smallint[], p_id uuid[], p_hold uuid[], p_ledger smallint[], p_consumer uuid[],
  p_spend_key int[], p_developer int[], p_tool text[], p_amount bigint[], p_seconds int[],
  p_final smallint[], p_over smallint[], p_card smallint[], p_idempotency bigint[], p_fingerprint bigint[],
  p_metadata text[], p_receipt_key smallint, p_replay_from uuid, p_replay_to uuid, p_settles_debts boolean
) returns table (
  ord int, outcome text, charge_id uuid, amount bigint, balance bigint, signed_by smallint, card smallint,
  hold_id uuid, ledger smallint, consumer uuid, tool text, hold_amount bigint, captured bigint,
  remaining bigint, state smallint, placed_at timestamptz, expires_at timestamptz,
  budget_id uuid, limit_scope text, limit_micros bigint, limit_left bigint, window_unit smallint,
  window_began timestamptz
)
language plpgsql volatile
-- A single plan of nested loops that probe indexes, for the reasons in post_charges_2.sql.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  c_max_age constant interval := '24 hours';
  -- As ONCE_HOURS in src/domain/approval.ts.
  c_once_within constant interval := '24 hours';
  -- What p_kind says, what p_over says (besides 2), and what farebox.holds.state says.
  kind_place constant smallint := 1; kind_capture constant smallint := 2; kind_release constant smallint := 3;
  kind_extend constant smallint := 4; kind_charge constant smallint := 5;
  over_refuse constant smallint := 0; over_cap constant smallint := 1; over_approve constant smallint := 3;
  state_open constant smallint := 0; state_captured constant smallint := 1; state_released constant smallint := 2;
  state_expired constant smallint := 3;
  -- The lower half of a code: the number of a key or of a node.
  code_number constant bigint := 4294967295;
  -- Per hold.
  h_ids uuid[]; h_ledger smallint[]; h_consumer uuid[]; h_developer int[]; h_tool text[];
  h_held bigint[]; h_captured bigint[]; h_captures int[]; h_state smallint[];
  h_placed timestamptz[]; h_expires timestamptz[]; h_is_changed boolean[]; h_is_extended boolean[];
  h_key int[]; h_overflow uuid[];
  -- Per consumer: what it had, what it owes, what this call adds, and the least that it refused for want of balance.
  c_ledgers smallint[]; c_ids uuid[]; c_spent bigint[]; c_available bigint[]; c_below bigint[];
  c_owed bigint[]; c_add_spent bigint[]; c_add_held bigint[]; c_is_asked boolean[]; c_refused bigint[]; c_is_owing boolean[];
  -- Spend keys and their paths, found by the number of the consumer in its upper half and of the key in its lower.
  k_codes bigint[]; k_paths text[]; k_revoked bigint[];
  -- Nodes of budgets, found likewise: as they are now, in the windows of now.
  n_codes bigint[]; n_used bigint[]; n_limit bigint[]; n_window_used bigint[]; n_window_limit bigint[];
  n_unit smallint[]; n_began timestamptz[]; n_is_closed boolean[]; n_is_changed boolean[];
  n_id uuid[]; n_max_per_call bigint[];
  -- The numbers of approved developers, as text; null where none needs approval. And whether an approval let a charge
  -- pass the limits of the node.
  n_approved text[]; n_is_lifted boolean[];
  -- Approvals that this call uses up, and what used them.
  u_approval uuid[] := '{}'; u_by uuid[] := '{}';
  -- Per entry.
  v_prior_is_same boolean[]; v_prior_id uuid[]; v_prior_amount bigint[]; v_prior_balance bigint[];
  v_prior_key smallint[]; v_prior_card smallint[];
  r_outcome text[] := array_fill(null::text, array[cardinality(p_kind)]);
  r_id uuid[] := p_id; r_hold uuid[] := p_hold; r_tool text[] := p_tool;
  r_amount bigint[] := p_amount; r_balance bigint[] := array_fill(0::bigint, array[cardinality(p_kind)]);
  r_spent bigint[] := array_fill(0::bigint, array[cardinality(p_kind)]);
  r_consumer int[] := array_fill(null::int, array[cardinality(p_kind)]);
  r_spend_key int[] := p_spend_key;
  r_node int[] := array_fill(null::int, array[cardinality(p_kind)]);
  r_scope text[] := array_fill(null::text, array[cardinality(p_kind)]);
  r_limit bigint[] := array_fill(null::bigint, array[cardinality(p_kind)]);
  r_left bigint[] := r_limit;
  c int; h int; n int;
  v_now timestamptz; v_began timestamptz[]; v_nodes int[];
  -- The scopes that an approval let the entry pass at a node.
  v_passed text[];
  v_once uuid; v_uses uuid[]; v_lifted int[];
  -- The times of the first and the last id.
  v_first timestamptz; v_last timestamptz;
  v_ask bigint; v_take bigint; v_excess bigint; v_let_go bigint; v_usable bigint;
begin
  select min(uuid_extract_timestamp(i.id)), max(uuid_extract_timestamp(i.id)) into v_first, v_last
  from unnest(p_id) as i(id);
  -- Every statement below has a new snapshot, so it sees what committed while this one waited for locks. Sorted by an
  -- expression: an index has the order of `ledger`, and the planner would read all of it for that.
  perform 1 from unnest(p_kind, p_hold, p_developer) as a(kind, id, developer)
    join farebox.holds x on x.developer = any (array[a.developer]) and x.id = any (array[a.id])
    where a.kind between kind_capture and kind_extend
    order by x.ledger + 0, x.id for update of x;
  select array_agg(x.id), array_agg(x.ledger), array_agg(x.consumer_id), array_agg(x.developer),
    array_agg(x.tool), array_agg(x.held_micros), array_agg(x.captured_micros), array_agg(x.captures),
    array_agg(case when x.state = state_open and x.expires_at <= now() then state_expired else x.state end),
    array_agg(x.placed_at), array_agg(x.expires_at), array_agg(false), array_agg(false),
    array_agg(x.spend_key), array_agg(x.overflow_charge)
  into h_ids, h_ledger, h_consumer, h_developer, h_tool, h_held, h_captured, h_captures, h_state, h_placed,
    h_expires, h_is_changed, h_is_extended, h_key, h_overflow
  from (
    select distinct q.id, q.developer from unnest(p_kind, p_hold, p_developer) as q(kind, id, developer)
    where q.kind between kind_capture and kind_extend
  ) a
  cross join lateral (
    select * from farebox.holds where developer = a.developer and id = a.id limit 1
  ) x;

  select array_agg(a.ledger), array_agg(a.id) into c_ledgers, c_ids
  from (
    select q.ledger, q.id from unnest(p_kind, p_ledger, p_consumer) as q(kind, ledger, id)
    where q.kind in (kind_place, kind_charge)
    union select q.ledger, q.id from unnest(h_ledger, h_consumer) as q(ledger, id)
  ) a;
  perform 1 from unnest(c_ledgers, c_ids) as a(ledger, id)
    join farebox.consumers x on x.ledger = any (array[a.ledger]) and x.id = any (array[a.id])
    order by a.ledger, a.id for update of x;
  select array_agg(x.spent_micros order by a.n),
    array_agg(x.credited_micros - x.spent_micros - x.held_micros order by a.n),
    array_agg(greatest(x.auto_top_up_below_micros, x.notice_below_micros) order by a.n), array_agg(0::bigint),
    array_agg(0::bigint), array_agg(false), array_agg(null::bigint), array_agg(false),
    array_agg((select coalesce(sum(d.debt_micros), 0)::bigint from farebox.reversals d
      where d.ledger = a.ledger and d.consumer_id = a.id and d.debt_micros > 0) order by a.n)
  into c_spent, c_available, c_below, c_add_spent, c_add_held, c_is_asked, c_refused, c_is_owing, c_owed
  from unnest(c_ledgers, c_ids) with ordinality as a(ledger, id, n)
  cross join lateral (
    select * from farebox.consumers where ledger = a.ledger and id = a.id limit 1
  ) x;

  -- Read under the locks, so for each consumer the transactions read increasing times.
  v_now := clock_timestamp();
  if 0 < any (p_spend_key) or 0 < any (h_key) then
    select array_agg(a.code), array_agg(s.path::text), array_agg(a.code) filter (where s.revoked_at is not null)
    into k_codes, k_paths, k_revoked
    from (
      select distinct (array_position(c_ids, q.consumer)::bigint << 32) + q.spend_key as code, q.ledger, q.consumer,
        q.spend_key
      from (
        select p.ledger, p.consumer, p.spend_key
        from unnest(p_kind, p_ledger, p_consumer, p_spend_key) as p(kind, ledger, consumer, spend_key)
        where p.kind in (kind_place, kind_charge)
        union all select p.ledger, p.consumer, p.spend_key
        from unnest(h_ledger, h_consumer, h_key) as p(ledger, consumer, spend_key)
      ) q where q.spend_key > 0
    ) a
    join farebox.spend_keys s on s.ledger = any (array[a.ledger]) and s.consumer_id = any (array[a.consumer])
      and s.number = any (array[a.spend_key]);

    v_began := farebox.windows_at(v_now);
    select array_agg(a.code), array_agg(b.used_micros), array_agg(b.limit_micros),
      array_agg(case when b.window_began < v_began[b.window_unit] then 0 else b.window_used_micros end),
      array_agg(b.window_limit_micros), array_agg(b.window_unit),
      array_agg(greatest(b.window_began, v_began[b.window_unit])), array_agg(b.is_closed), array_agg(false),
      array_agg(d.id), array_agg(d.max_per_call_micros),
      array_agg(case when d.approve_developers then array(
        select x.developer_number from farebox.accounts x where x.developer_id = any (d.approved_developers))::text end),
      array_agg(false)
    into n_codes, n_used, n_limit, n_window_used, n_window_limit, n_unit, n_began, n_is_closed, n_is_changed,
      n_id, n_max_per_call, n_approved, n_is_lifted
    from (
      select distinct (k.code >> 32 << 32) + p.number as code, (k.code >> 32)::int as owner, p.number
      from unnest(k_codes, k_paths) as k(code, path) cross join lateral unnest(k.path::int[]) as p(number)
    ) a
    join farebox.budgets b on b.ledger = any (array[c_ledgers[a.owner]])
      and b.consumer_id = any (array[c_ids[a.owner]]) and b.number = any (array[a.number])
    join farebox.budget_details d on d.ledger = any (array[b.ledger])
      and d.consumer_id = any (array[b.consumer_id]) and d.number = any (array[b.number]);
  end if;

  -- What the same keys did earlier. `limit 1` and the bounds on ids are those of post_charges_2.sql.
  select array_agg(p.is_same order by a.n), array_agg(p.id order by a.n), array_agg(p.amount order by a.n),
    array_agg(p.balance order by a.n), array_agg(p.key order by a.n), array_agg(p.card order by a.n)
  into v_prior_is_same, v_prior_id, v_prior_amount, v_prior_balance, v_prior_key, v_prior_card
  from unnest(p_kind, p_hold, p_idempotency, p_fingerprint) with ordinality
    as a(kind, hold, hash, fingerprint, n)
  left join lateral (
    (select x.request_fingerprint = a.fingerprint as is_same, x.id, x.amount_micros as amount,
        x.balance_micros as balance, p_receipt_key as key, 0::int2 as card
      from farebox.holds x
      where a.kind = kind_place and x.idempotency_hash = a.hash
        and (x.request_fingerprint # a.fingerprint) >> 40 = 0
        and x.id >= p_replay_from and x.id < p_replay_to
      limit 1)
    union all
    (select x.request_fingerprint = a.fingerprint, x.id, x.amount_micros, x.balance_micros, x.receipt_key,
        substr(x.origin, 5, 2)::int2
      from farebox.charges x
      where a.kind in (kind_capture, kind_charge) and x.idempotency_hash = a.hash
        and (x.request_fingerprint # a.fingerprint) >> 40 = 0
        and x.id >= p_replay_from and x.id < p_replay_to
      limit 1)
    union all
    (select x.request_fingerprint = a.fingerprint, x.hold_id, 0, 0, p_receipt_key, 0
      from farebox.hold_extensions x
      where a.kind = kind_extend and x.hold_id = a.hold and x.idempotency_hash = a.hash)
  ) p on a.hash is not null;

  for i in 1 .. cardinality(p_kind) loop
    if v_prior_is_same[i] is not null then
      r_outcome[i] := case when v_prior_is_same[i] then 'replayed' else 'key_reused' end;
      r_id[i] := v_prior_id[i];
      if p_kind[i] = kind_place then r_hold[i] := v_prior_id[i]; end if;
      r_amount[i] := v_prior_amount[i]; r_balance[i] := v_prior_balance[i];
      continue;
    end if;

    v_nodes := '{}'; v_uses := '{}'; v_lifted := '{}';
    if p_kind[i] in (kind_place, kind_charge) then
      c := array_position(c_ids, p_consumer[i]);
      if p_kind[i] = kind_place then r_hold[i] := p_id[i]; else r_hold[i] := null; end if;
      r_consumer[i] := c;
      if c_is_owing[c] then r_outcome[i] := 'owing'; continue; end if;
      v_excess := p_amount[i];
      -- A process may know it as active for a second. Nothing may be held by it once its holds were released.
      if (c::bigint << 32) + p_spend_key[i] = any (k_revoked) then r_outcome[i] := 'key_closed'; continue; end if;
    else
      h := array_position(h_ids, p_hold[i]);
      -- A hold without a tool is a lease, which settle_lease.sql decides.
      if h is null or h_developer[h] <> p_developer[i] or h_tool[h] = '' then
        r_outcome[i] := 'unknown_hold'; r_hold[i] := null; continue;
      end if;
      c := array_position(c_ids, h_consumer[h]);
      if c_is_owing[c] then r_outcome[i] := 'owing'; continue; end if;
      r_tool[i] := h_tool[h];
      r_spend_key[i] := h_key[h];
      if h_state[h] <> state_open then
        r_outcome[i] := case when p_kind[i] = kind_release and h_state[h] = state_released then 'done' else 'hold_closed' end;
        continue;
      end if;
      if p_kind[i] = kind_extend then
        if now() + make_interval(secs => p_seconds[i]) > h_expires[h] then
          h_is_changed[h] := true; h_is_extended[h] := true;
          h_expires[h] := greatest(h_expires[h],
            least(now() + make_interval(secs => p_seconds[i]), h_placed[h] + c_max_age));
        end if;
        r_outcome[i] := 'done'; continue;
      end if;

      v_ask := case p_kind[i] when kind_release then 0 else coalesce(nullif(p_amount[i], 0), h_held[h]) end;
      if v_ask > h_held[h] and p_over[i] = over_refuse then
        r_outcome[i] := 'exceeds_hold'; r_amount[i] := h_held[h]; continue;
      end if;
      v_take := least(v_ask, h_held[h]);
      if p_over[i] = over_cap then v_ask := v_take; end if;
      v_excess := v_ask - v_take;
      -- Under the consumer's lock, as the owner's settings change.
      if v_excess > 0 and not farebox.may_exceed_hold(
        h_ledger[h], h_consumer[h], h_key[h], h_developer[h], h_tool[h], h_placed[h]) then
        r_outcome[i] := 'exceeds_hold'; r_amount[i] := h_held[h]; continue;
      end if;
      v_let_go := case when p_kind[i] = kind_release or p_final[i] = 1 then h_held[h] - v_take else 0 end;
      c_is_owing[c] := v_let_go > 0 and c_owed[c] > 0 and not p_settles_debts;
      if c_is_owing[c] then r_outcome[i] := 'owing'; continue; end if;
    end if;

    -- Budgets before the balance: where a limit refuses, a top-up would not help and is not asked for.
    if r_spend_key[i] > 0 then
      v_nodes := array(
        select array_position(n_codes, (c::bigint << 32) + p.number)
        from unnest(k_paths[array_position(k_codes, (c::bigint << 32) + r_spend_key[i])]::int[]) with ordinality
          as p(number, depth)
        order by p.depth);
    end if;
    if v_excess > 0 then
      foreach n in array v_nodes loop
        v_passed := '{}';
        loop
          r_scope[i] := case when n_is_closed[n] then 'closed'
            when p_over[i] = over_approve and 'developer' <> all (v_passed)
              and p_developer[i] <> all (n_approved[n]::int[]) then 'developer'
            -- Of charges and holds this is checked before they come here; only a capture takes more than was asked for.
            when p_over[i] = over_approve and 'per_call' <> all (v_passed) and v_excess > n_max_per_call[n]
              or p_kind[i] = kind_capture and h_captured[h] + v_ask > n_max_per_call[n] then 'per_call'
            when 'total' <> all (v_passed) and v_excess > n_limit[n] - n_used[n] then 'total'
            when 'window' <> all (v_passed) and v_excess > n_window_limit[n] - n_window_used[n] then 'window' end;
          exit when r_scope[i] is null or r_scope[i] = 'closed' or p_kind[i] = kind_capture;
          select a.id into v_once from farebox.approvals a
          where a.ledger = any (array[p_ledger[i]]) and a.consumer_id = any (array[p_consumer[i]])
            and a.spend_key = any (array[p_spend_key[i]]) and a.developer = any (array[p_developer[i]])
            and a.tool = any (array[p_tool[i]]) and a.budget = (n_codes[n] & code_number)::int
            and coalesce(a.scope, 'developer') = r_scope[i]
            and a.decision = 'once' and a.used_by is null and a.amount_micros >= v_excess
            and a.decided_at > v_now - c_once_within and a.id <> all (u_approval)
          -- The smallest: a larger one may be for a call that only it lets pass.
          order by a.amount_micros, a.id limit 1;
          exit when v_once is null;
          v_uses := v_uses || v_once;
          v_passed := v_passed || r_scope[i];
        end loop;
        if v_passed && array['total', 'window'] then v_lifted := v_lifted || n; end if;
        continue when r_scope[i] is null;
        r_node[i] := n;
        if r_scope[i] <> 'developer' then
          r_limit[i] := case r_scope[i] when 'total' then n_limit[n] when 'window' then n_window_limit[n]
            else n_max_per_call[n] end;
          r_left[i] := greatest(r_limit[i] - case when r_scope[i] = 'total' then n_used[n]
            when r_scope[i] = 'window' then n_window_used[n] when p_kind[i] = kind_capture then h_captured[h] else 0 end, 0);
        end if;
        exit;
      end loop;
      if r_node[i] is not null then
        r_amount[i] := v_excess;
        r_outcome[i] := case r_scope[i] when 'developer' then 'approval_required' when 'closed' then 'key_closed'
          else 'limit_reached' end;
        continue;
      end if;
      c_is_asked[c] := true;
      v_usable := greatest(c_available[c] - c_owed[c], 0);
      if v_excess > v_usable then
        r_outcome[i] := 'insufficient'; r_amount[i] := v_excess; r_balance[i] := v_usable;
        c_refused[c] := least(c_refused[c], v_excess);
        continue;
      end if;
      foreach n in array v_nodes loop
        n_is_changed[n] := true;
        n_used[n] := n_used[n] + v_excess;
        if n_unit[n] > 0 then n_window_used[n] := n_window_used[n] + v_excess; end if;
      end loop;
      foreach n in array v_lifted loop n_is_lifted[n] := true; end loop;
      foreach v_once in array v_uses loop
        u_approval := u_approval || v_once; u_by := u_by || p_id[i];
      end loop;
    end if;

    r_outcome[i] := 'done';
    if p_kind[i] in (kind_place, kind_charge) then
      c_available[c] := c_available[c] - v_excess;
      if p_kind[i] = kind_place then
        c_add_held[c] := c_add_held[c] + v_excess;
      else
        c_add_spent[c] := c_add_spent[c] + v_excess;
        r_spent[i] := c_spent[c] + c_add_spent[c];
      end if;
      r_balance[i] := greatest(c_available[c] - c_owed[c], 0);
      continue;
    end if;

    if v_let_go > 0 then
      foreach n in array v_nodes loop
        n_is_changed[n] := true;
        n_used[n] := n_used[n] - v_let_go;
        if n_unit[n] > 0 and h_placed[h] >= n_began[n] then n_window_used[n] := greatest(n_window_used[n] - v_let_go, 0); end if;
      end loop;
    end if;
    h_is_changed[h] := true;
    h_held[h] := h_held[h] - v_take - v_let_go;
    h_captured[h] := h_captured[h] + v_ask;
    if h_held[h] = 0 then h_state[h] := case p_kind[i] when kind_release then state_released else state_captured end; end if;
    if v_excess > 0 then h_overflow[h] := p_id[i]; end if;
    c_available[c] := c_available[c] + v_let_go - v_excess;
    c_add_held[c] := c_add_held[c] - v_take - v_let_go;
    r_balance[i] := greatest(c_available[c] - c_owed[c], 0);
    r_amount[i] := v_ask;
    if p_kind[i] = kind_capture then
      h_captures[h] := h_captures[h] + 1;
      c_add_spent[c] := c_add_spent[c] + v_ask;
      r_spent[i] := c_spent[c] + c_add_spent[c];
      r_consumer[i] := c;
    end if;
  end loop;

  update farebox.holds x set held_micros = a.held, captured_micros = a.captured, captures = a.captures,
    state = a.state, expires_at = a.expires, overflow_charge = a.overflow
  from unnest(h_ids, h_developer, h_held, h_captured, h_captures, h_state, h_expires, h_overflow, h_is_changed)
    as a(id, developer, held, captured, captures, state, expires, overflow, is_changed)
  where a.is_changed and x.developer = any (array[a.developer]) and x.id = any (array[a.id]);

  update farebox.consumers x set spent_micros = x.spent_micros + a.add_spent,
    held_micros = x.held_micros + a.add_held, reserved_micros = x.reserved_micros + a.add_held,
    charged_at = greatest(x.charged_at, v_last),
    disorder = greatest(x.disorder, greatest(x.charged_at, v_last) - v_first)
  from unnest(c_ledgers, c_ids, c_add_spent, c_add_held) as a(ledger, id, add_spent, add_held)
  where x.ledger = any (array[a.ledger]) and x.id = any (array[a.id]) and (a.add_spent <> 0 or a.add_held <> 0);
  perform farebox.note_refusals(c_ledgers, c_ids, c_refused) where array_remove(c_refused, null) <> '{}';
  -- Only where something was asked for: what is let go crosses nothing.
  perform farebox.note_crossings(array_agg(a.ledger), array_agg(a.id), array_agg(a.refused is not null))
  from unnest(c_ledgers, c_ids, c_available, c_below, c_is_asked, c_refused)
    as a(ledger, id, available, below, is_asked, refused)
  where a.refused is not null and a.below is not null or a.is_asked and a.available < a.below
  having count(*) > 0;

  if true = any (n_is_changed) then
    update farebox.budgets b set used_micros = a.used, window_used_micros = a.window_used,
      -- What an approval let pass is the bound from then on, as when a limit is set below what is used.
      used_at_limit_micros = case when a.is_lifted then greatest(b.used_at_limit_micros, a.used)
        else b.used_at_limit_micros end,
      window_used_at_limit_micros = greatest(case when a.is_lifted then a.window_used else 0 end,
        case when b.window_began < a.began then 0 else b.window_used_at_limit_micros end),
      -- Charges of this call are behind what the consumer had spent before it.
      window_from_micros = case when b.window_began < a.began then c_spent[(a.code >> 32)::int]
        else b.window_from_micros end,
      window_began = a.began
    from unnest(n_codes, n_used, n_window_used, n_began, n_is_changed, n_is_lifted)
      as a(code, used, window_used, began, is_changed, is_lifted)
    where a.is_changed and b.ledger = any (array[c_ledgers[(a.code >> 32)::int]])
      and b.consumer_id = any (array[c_ids[(a.code >> 32)::int]])
      and b.number = any (array[(a.code & code_number)::int]);
  end if;

  if cardinality(u_approval) > 0 then
    with used as (
      update farebox.approvals a set used_by = u.used_by
      from unnest(u_approval, u_by) as u(id, used_by) where a.id = any (array[u.id])
      returning a.ledger, a.consumer_id, a.budget
    )
    -- What memory knows of the node has changed.
    update farebox.budget_details d set changed_at = clock_timestamp()
    from used u
    where d.ledger = any (array[u.ledger]) and d.consumer_id = any (array[u.consumer_id])
      and d.number = any (array[u.budget]);
  end if;

  if kind_capture = any (p_kind) or kind_charge = any (p_kind) then
    with made as (
      select a.*, c_ledgers[a.owner] as ledger, c_ids[a.owner] as consumer,
        (row_number() over (order by a.n))::int as place
      from unnest(p_kind, r_outcome, r_id, r_hold, r_consumer, r_spend_key, p_developer, r_tool, r_amount, r_spent,
        r_balance, p_card, p_idempotency, p_fingerprint, p_metadata) with ordinality
        as a(kind, outcome, id, hold, owner, spend_key, developer, tool, amount, spent, balance, card, hash, fingerprint,
          metadata, n)
      where a.kind in (kind_capture, kind_charge) and a.outcome = 'done'
    ), charged as (
      insert into farebox.charges (amount_micros, spent_micros, balance_micros, idempotency_hash,
        request_fingerprint, id, consumer_id, developer, ledger, receipt_key, tool, metadata, origin)
      select a.amount, a.spent, a.balance, a.hash, a.fingerprint, a.id, a.consumer, a.developer, a.ledger,
        p_receipt_key, a.tool, coalesce(a.metadata, ''),
        case when a.hold is not null then int4send(a.spend_key) || int2send(a.card) || uuid_send(a.hold)
          when a.card > 0 then int4send(a.spend_key) || int2send(a.card) when a.spend_key > 0 then int4send(a.spend_key) else '' end
      from made a
    ), earned as (
      insert into farebox.earnings_tail
        (ledger, developer, minute, tool, amount_micros, charges, consumer_id, spend_key)
      select min(a.ledger), a.developer, date_bin('1 minute', uuid_extract_timestamp(a.id), 'epoch'), a.tool,
        sum(a.amount), count(*), case when a.spend_key > 0 then a.consumer end, nullif(a.spend_key, 0)
      from made a group by 2, 3, 4, 7, 8
    )
    insert into farebox.attribution_tail
      (ledgers, consumers, spent_before, charge_group, through, developers, amounts)
    select array_agg(a.ledger order by a.n), array_agg(a.consumer order by a.n),
      array_agg(a.spent - a.amount order by a.n), array_agg(a.place order by a.n),
      array_agg(a.amount order by a.n), array_agg(a.developer order by a.n), array_agg(a.amount order by a.n)
    from made a having count(*) > 0;
  end if;

  if kind_place = any (p_kind) then
    insert into farebox.holds (amount_micros, held_micros, balance_micros, idempotency_hash, request_fingerprint,
      placed_at, expires_at, id, consumer_id, developer, spend_key, ledger, tool, metadata, card)
    select a.amount, a.amount, a.balance, a.hash, a.fingerprint, v_now, v_now + make_interval(secs => a.seconds), a.id,
      c_ids[a.owner], a.developer, a.spend_key, c_ledgers[a.owner], a.tool, coalesce(a.metadata, ''), a.card
    from unnest(p_kind, r_outcome, r_amount, r_balance, p_idempotency, p_fingerprint, p_seconds, p_id, r_consumer,
      p_developer, p_spend_key, p_tool, p_metadata, p_card)
      as a(kind, outcome, amount, balance, hash, fingerprint, seconds, id, owner, developer, spend_key, tool, metadata, card)
    where a.kind = kind_place and a.outcome = 'done';
    insert into farebox.hold_expiries (ledger, due_at, developers, holds)
    select a.ledger, v_now + make_interval(secs => a.seconds), array_agg(a.developer), array_agg(a.id)
    from unnest(p_kind, r_outcome, p_ledger, p_seconds, p_developer, p_id) as a(kind, outcome, ledger, seconds, developer, id)
    where a.kind = kind_place and a.outcome = 'done' group by a.ledger, a.seconds;
  end if;

  if kind_extend = any (p_kind) then
    insert into farebox.hold_expiries (ledger, due_at, developers, holds)
    select a.ledger, a.expires, array_agg(a.developer), array_agg(a.id)
    from unnest(h_is_extended, h_state, h_ledger, h_expires, h_developer, h_ids) as a(is_extended, state, ledger, expires, developer, id)
    where a.is_extended and a.state = state_open group by a.ledger, a.expires;
    insert into farebox.hold_extensions (ledger, hold_id, idempotency_hash, request_fingerprint)
    select h_ledger[array_position(h_ids, a.hold)], a.hold, a.hash, a.fingerprint
    from unnest(p_kind, r_outcome, p_hold, p_idempotency, p_fingerprint) as a(kind, outcome, hold, hash, fingerprint)
    where a.kind = kind_extend and a.outcome = 'done' and a.hash is not null;
  end if;

  return query
  select a.n::int, a.outcome, a.id, a.amount, a.balance, coalesce(a.key, p_receipt_key),
    coalesce(a.prior_card, a.card), x.id, x.ledger, x.consumer_id, x.tool,
    x.amount_micros, x.captured_micros,
    case when x.state = state_open and x.expires_at <= now() then 0 else x.held_micros end,
    case when x.state = state_open and x.expires_at <= now() then state_expired else x.state end,
    x.placed_at, x.expires_at, n_id[a.node], a.scope, a.micros, a.left_micros, n_unit[a.node], v_began[n_unit[a.node]]
  from unnest(r_outcome, r_id, r_amount, r_balance, v_prior_key, v_prior_card, p_card, r_hold, p_developer, r_node, r_scope, r_limit, r_left)
    with ordinality
    as a(outcome, id, amount, balance, key, prior_card, card, hold, developer, node, scope, micros, left_micros, n)
  left join lateral (
    select * from farebox.holds where developer = a.developer and id = a.hold limit 1
  ) x on true;
end $$;
