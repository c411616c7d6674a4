-- A charge is what there are most of, so its row and its indexes are made narrower; and the transaction that
-- makes it also notes what developers earned and which stretch of whose money it was, in two tails that a
-- workflow empties into sums, and asks for an automatic top-up where one is due.

alter table farebox.accounts add column developer_number int generated always as identity,
  add constraint accounts_developer_number_unique unique (developer_number);
comment on column farebox.accounts.developer_number is
  'The developer in four bytes: every charge names it, and so does an index of them.';

alter table farebox.consumers add column auto_top_up_below_micros bigint;
comment on column farebox.consumers.auto_top_up_below_micros is
  'A charge that leaves less, or does not fit, asks for an automatic top-up and sets this to null, so that '
  'it is asked for once. Null: switched off, or asked for.';
alter table farebox.outbox drop constraint outbox_workflow_known,
  add constraint outbox_workflow_known check (workflow in ('grant', 'invocation', 'auto_top_up'));

create schema farebox_before;
do $$
declare
  part record;
begin
  create temporary table charge_partitions on commit drop as
    select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'farebox.charges'::regclass;
  for part in select * from charge_partitions loop
    execute format('alter table farebox.%I set schema farebox_before', part.name);
  end loop;
end $$;
alter table farebox.charges set schema farebox_before;

create table farebox.charges (
  amount_micros bigint not null,
  spent_micros bigint not null,
  balance_micros bigint not null,
  idempotency_hash bigint,
  request_fingerprint bigint,
  id uuid not null,
  consumer_id uuid not null,
  developer int not null,
  ledger smallint not null,
  receipt_key smallint not null,
  tool text not null,
  metadata text not null default '',
  constraint charges_pkey primary key (ledger, consumer_id, id),
  constraint charges_amount_positive check (amount_micros > 0)
) partition by range (id);
comment on table farebox.charges is
  'Never changed, and without foreign keys: each would lock a popular developer''s row in every transaction. '
  'Partitioned by month of the id, a UUIDv7; columns are ordered so that none needs padding.';
comment on column farebox.charges.spent_micros is
  'The consumer''s spent counter after this charge: it paid for [spent - amount, spent) of the axis.';
comment on column farebox.charges.balance_micros is 'The balance after this charge.';
comment on column farebox.charges.idempotency_hash is
  'The first 64 bits of SHA-256 over consumer, developer and idempotency key.';
comment on column farebox.charges.request_fingerprint is
  'The next 24 bits of that hash, which tell apart the rare keys that share the first ones, then 40 bits of '
  'a hash of what was sent: the same key with another body is refused.';
comment on column farebox.charges.developer is 'accounts.developer_number.';
comment on column farebox.charges.receipt_key is 'Number of the master secret that signs the receipt.';
comment on column farebox.charges.metadata is 'JSON as it was sent; empty: none was.';
create index charges_developer on farebox.charges (developer, id);
create index charges_idempotency on farebox.charges (idempotency_hash)
  where idempotency_hash is not null;

do $$
declare
  part record;
begin
  for part in select * from charge_partitions loop
    execute format('create table farebox.%I partition of farebox.charges %s', part.name, part.bound);
  end loop;
end $$;

insert into farebox.charges (amount_micros, spent_micros, balance_micros, idempotency_hash,
  request_fingerprint, id, consumer_id, developer, ledger, receipt_key, tool, metadata)
select amount_micros, spent_micros, balance_micros,
  ('x' || left(hash, 16))::bit(64)::bigint,
  ('x' || substr(hash, 17, 6) || lpad(to_hex(request_fingerprint >> 8), 10, '0'))::bit(64)::bigint,
  c.id, c.consumer_id, a.developer_number, c.ledger, receipt_key, tool, coalesce(metadata::text, '')
from farebox_before.charges c join farebox.accounts a on a.developer_id = c.developer_id
cross join lateral (select replace(idempotency_hash::text, '-', '') as hash) h;
do $$
begin
  if (select count(*) from farebox.charges) <> (select count(*) from farebox_before.charges) then
    raise 'a charge names a developer that has no account';
  end if;
end $$;

drop function farebox.post_charges, farebox.post_fitting_charges;
drop schema farebox_before cascade;

-- What developers earned and no rollup has moved yet. Charges add to it and never wait for each other here:
-- a row that they updated would be the one row of the whole system that everybody waits for.
create table farebox.earnings_tail (
  ledger smallint not null,
  developer int not null,
  hour timestamptz not null,
  tool text not null,
  amount_micros bigint not null,
  charges int not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_insert_threshold = -1);
comment on table farebox.earnings_tail is
  'One row for each developer, tool and hour (of the charges'' ids, UTC) of a flush.';
comment on column farebox.earnings_tail.ledger is
  'Of one of the flush''s consumers: where the row is kept, not what it says.';
create index earnings_tail_developer on farebox.earnings_tail (developer);

-- Which stretch of whose money a flush spent on which developer: what says which top-up paid. Arrays, because
-- one row a flush costs next to nothing, and nobody looks for a single charge here.
create table farebox.attribution_tail (
  id bigint generated always as identity primary key,
  ledgers smallint[] not null,
  consumers uuid[] not null,
  spent_before bigint[] not null,
  charge_group int[] not null,
  through bigint[] not null,
  developers int[] not null,
  amounts bigint[] not null
) with (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1);
comment on table farebox.attribution_tail is
  'ledgers, consumers, spent_before: by group, a consumer; null in spent_before: it was not debited. '
  'charge_group, through, developers, amounts: by charge, which covers [spent_before of its group + through - '
  'amount, spent_before + through) of the axis.';

insert into farebox.earnings_tail (ledger, developer, hour, tool, amount_micros, charges)
select min(ledger), developer, date_bin('1 hour', uuid_extract_timestamp(id), 'epoch'), tool,
  sum(amount_micros), count(*)
from farebox.charges group by 2, 3, 4;

insert into farebox.attribution_tail
  (ledgers, consumers, spent_before, charge_group, through, developers, amounts)
select array_agg(ledger), array_agg(consumer_id), array_agg(spent_micros - amount_micros),
  array_agg(place), array_agg(amount_micros), array_agg(developer), array_agg(amount_micros)
from (
  select *, (row_number() over () - 1) / 500 as chunk, ((row_number() over () - 1) % 500 + 1)::int as place
  from farebox.charges
) c group by chunk;

-- The charge statement: decides and writes a batch of charges in one round trip and one commit.
-- Guarantees: a consumer never overspends; a key that made a charge makes no second one; charges of one
-- consumer are decided in the order of the arrays; one refusal never touches its neighbours.
-- Asks of its caller: no idempotency key twice in one call.
-- Outcome: 'posted', 'replayed', 'insufficient', 'key_reused'. Of a replay, everything comes from its row.
create function farebox.post_charges(
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
    insert into farebox.earnings_tail (ledger, developer, hour, tool, amount_micros, charges)
    select min(ledger), developer, date_bin('1 hour', uuid_extract_timestamp(id), 'epoch'), tool,
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
create function farebox.post_fitting_charges(
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
    insert into farebox.earnings_tail (ledger, developer, hour, tool, amount_micros, charges)
    select min(p_group_ledger[r.grp]), r.developer,
      date_bin('1 hour', uuid_extract_timestamp(r.id), 'epoch'), r.tool, sum(r.amount), count(*)
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
