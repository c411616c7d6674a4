-- Closes the holds that are due and releases the money they reserve, to balances and budgets, in bulk. Any number of calls may run at once:
-- each skips the rows of hold_expiries that another one has locked. A hold that was captured or released meanwhile is
-- not touched; one that was extended has a later row too.
-- Locks, as everywhere: holds by (ledger, id), then consumers by (ledger, id).
-- Each developer gets an event for each hold and each lease.
-- Takes at most p_rows rows, the oldest first, and none after those that list 2,000 holds: one row lists up to 200, closing a hold at the
-- bottom of six budgets takes up to a quarter of a millisecond on a busy machine, and a statement that takes ten seconds is rolled back.
-- Returns how many rows it took, or p_rows if more may be due; how many holds it closed; and the consumers whose balance
-- rose: the caller must repay their debts in the same transaction.
create or replace function farebox.expire_holds(
  p_rows int, out taken int, out closed int, out ledgers smallint[], out consumers uuid[]
)
language plpgsql volatile
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_developer int[]; v_id uuid[];
  e_ledger smallint[]; e_consumer uuid[]; e_developer int[]; e_id uuid[]; e_micros bigint[]; e_key int[];
  e_placed timestamptz[]; e_is_lease boolean[];
begin
  closed := 0;
  with found as materialized (
    select x.ledger, x.id, x.due_at, cardinality(x.holds) as holds
    from farebox.hold_expiries x where x.due_at <= now() order by x.due_at limit p_rows
    for update skip locked
  ), due as (
    select u.ledger, u.id from (
      select f.*, sum(f.holds) over (order by f.due_at, f.ledger, f.id) - f.holds as earlier from found f
    ) u where u.earlier < 2000
  ), gone as (
    delete from farebox.hold_expiries x using due
    where x.ledger = any (array[due.ledger]) and x.id = any (array[due.id]) returning x.developers, x.holds
  )
  select case when (select count(*) from gone) < (select count(*) from found) then p_rows
    else (select count(*) from gone) end, array_agg(a.developer), array_agg(a.id)
  into taken, v_developer, v_id
  from gone cross join lateral unnest(gone.developers, gone.holds) as a(developer, id);
  if v_id is null then return; end if;

  -- Most are closed by now, and cost this probe; `limit 1` keeps it one, as in post_charges_2.sql.
  select array_agg(a.developer), array_agg(a.id) into v_developer, v_id
  -- An extended hold may be in two rows.
  from (select distinct q.developer, q.id from unnest(v_developer, v_id) as q(developer, id)) a
  cross join lateral (
    select state, expires_at from farebox.holds where developer = a.developer and id = a.id limit 1
  ) h
  where h.state = 0 and h.expires_at <= now();
  if v_id is null then return; end if;

  perform 1 from unnest(v_developer, v_id) as a(developer, id)
    join farebox.holds h on h.developer = any (array[a.developer]) and h.id = any (array[a.id])
    order by h.ledger + 0, h.id for update of h;
  -- A new statement, so it sees what committed while the previous one waited for locks.
  select array_agg(h.ledger), array_agg(h.consumer_id), array_agg(a.developer), array_agg(a.id),
    array_agg(h.held_micros), array_agg(h.spend_key), array_agg(h.placed_at), array_agg(h.tool = '')
  into e_ledger, e_consumer, e_developer, e_id, e_micros, e_key, e_placed, e_is_lease
  from unnest(v_developer, v_id) as a(developer, id)
  cross join lateral (
    select * from farebox.holds where developer = a.developer and id = a.id limit 1
  ) h
  where h.state = 0 and h.expires_at <= now();
  if e_id is null then return; end if;

  update farebox.holds h set state = 3, held_micros = 0
  from unnest(e_developer, e_id) as a(developer, id)
  where h.developer = any (array[a.developer]) and h.id = any (array[a.id]);
  if true = any (e_is_lease) then
    update farebox.leases l set released_micros = a.micros
    from unnest(e_id, e_micros, e_is_lease) as a(id, micros, is_lease)
    where a.is_lease and l.id = any (array[a.id]);
    perform farebox.post_lease_events(
      (select array_agg(a.id) from unnest(e_id, e_is_lease) as a(id, is_lease) where a.is_lease));
  end if;
  -- One statement for all: each statement that inserts events leaves a notice for each endpoint.
  insert into farebox.events (ledger, account_id, type, data, created_at)
  select h.ledger, d.id, 'hold.expired', json_build_object(
    'id', farebox.wire_id('hld', h.id),
    'tool', h.tool,
    'amount', farebox.wire_dollars(h.amount_micros),
    'captured', farebox.wire_dollars(h.captured_micros),
    'remaining', 0,
    'status', 'expired',
    'expiresAt', farebox.wire_time(h.expires_at),
    'createdAt', farebox.wire_time(h.placed_at),
    'consumerId', farebox.wire_id('cns', h.consumer_id),
    'developerId', farebox.wire_id('dev', d.developer_id)), clock_timestamp()
  from unnest(e_developer, e_id) as a(developer, id)
  join farebox.accounts d on d.developer_number = any (array[a.developer])
  cross join lateral (
    select * from farebox.holds where developer = a.developer and id = a.id limit 1
  ) h
  where h.tool <> '';

  perform 1 from unnest(e_ledger, e_consumer) as a(ledger, id)
    join farebox.consumers c on c.ledger = any (array[a.ledger]) and c.id = any (array[a.id])
    order by a.ledger, a.id for update of c;
  with lowered as (
    update farebox.consumers c set held_micros = c.held_micros - g.micros,
      reserved_micros = c.reserved_micros - g.micros
    from (
      select a.ledger, a.consumer, sum(a.micros)::bigint as micros
      from unnest(e_ledger, e_consumer, e_micros) as a(ledger, consumer, micros) group by 1, 2
    ) g
    where c.ledger = any (array[g.ledger]) and c.id = any (array[g.consumer])
    returning c.ledger, c.id
  )
  select cardinality(e_id), array_agg(l.ledger), array_agg(l.id) into closed, ledgers, consumers from lowered l;
  if 0 < any (e_key) then
    perform farebox.give_back_to_budgets(e_ledger, e_consumer, e_key, e_micros, e_placed,
      array_fill(null::bigint, array[cardinality(e_id)]));
  end if;
end $$;
