-- The charge statement: decides and writes a batch of charges in one round trip and one commit. It handles every case;
-- post_fitting_groups_2.sql is faster, handles the usual one, and leaves the rest to this one.
-- Guarantees: a consumer never overspends; a key that made a charge makes no second one; charges of one consumer are
-- decided in the order of the arrays; a refusal never affects other charges.
-- Requires: no idempotency key twice in one call.
-- Outcome: 'posted', 'replayed', 'insufficient', 'key_reused'. A replay returns the values in the row of the first
-- charge. p_card is as in post_fitting_groups_2.sql; `card` is that of the charge, as its receipt says.
create or replace function farebox.post_charges_2(
  p_ledger smallint[], p_consumer uuid[], p_id uuid[], p_developer int[], p_tool text[],
  p_amount bigint[], p_card smallint[], p_idempotency bigint[], p_fingerprint bigint[], p_metadata text[],
  p_receipt_key smallint, p_replay_from uuid, p_replay_to uuid
) returns table (
  ord int, outcome text, charge_id uuid, amount bigint, balance bigint, signed_by smallint, card smallint
)
language plpgsql volatile
-- A single plan that only probes indexes, regardless of the statistics when it was made: a process keeps it for days,
-- and a table that was empty at the start does not stay empty. The planner reads a whole index only in an order that it
-- can use, for a merge join or a sort. So locks and updates, here and in the other functions, join by
-- `= any (array[...])`, which has no order, and sort by the arguments. Reads are look-ups through `lateral` and
-- `limit 1`, which does not change the result.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  -- The times of the first and the last id.
  v_first timestamptz; v_last timestamptz;
  -- Consumers whose balance is below a threshold now, or had a charge refused.
  v_ledgers smallint[] := '{}'; v_consumers uuid[] := '{}'; v_is_refused boolean[] := '{}'; v_refused bigint[] := '{}';
  v_decided record;
begin
  select min(uuid_extract_timestamp(i.id)), max(uuid_extract_timestamp(i.id)) into v_first, v_last
  from unnest(p_id) as i(id);
  -- Locks first, in the order used everywhere. The next statement has a new snapshot, so it sees what committed while
  -- this one waited; a single statement for both would use an old snapshot and charge twice.
  perform 1 from (select distinct q.ledger, q.id from unnest(p_ledger, p_consumer) as q(ledger, id)) a
    join farebox.consumers c on c.ledger = any (array[a.ledger]) and c.id = any (array[a.id])
    order by a.ledger, a.id for update of c;

  for v_decided in
  with asked as (
    select * from unnest(p_ledger, p_consumer, p_id, p_developer, p_tool, p_amount, p_card, p_idempotency,
      p_fingerprint, p_metadata) with ordinality
      as r(ledger, consumer, id, developer, tool, amount, card, idempotency, fingerprint, metadata, ord)
  ),
  -- Charges made earlier with the same key. The hash names consumer and developer too; asking for these again would let
  -- the planner read all of a consumer's charges instead of probing the hash. The bounds on ids exclude the partitions
  -- of other times.
  prior as (
    select a.ord, a.fingerprint = h.request_fingerprint as same, h.id, h.amount_micros,
      h.balance_micros, h.receipt_key, substr(h.origin, 5, 2)::int2 as card
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
      greatest(c.auto_top_up_below_micros, c.notice_below_micros) as below
    from asked a cross join lateral (
      select * from farebox.consumers where ledger = a.ledger and id = a.consumer limit 1
    ) c
    where not exists (select from prior p where p.ord = a.ord)
  ),
  -- Running totals decide which charges fit: a charge is accepted where the total grows.
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
      charged_at = greatest(c.charged_at, v_last),
      disorder = greatest(c.disorder, greatest(c.charged_at, v_last) - v_first)
    from (select ledger, consumer, max(total) as total from decided group by 1, 2) d
    where c.ledger = any (array[d.ledger]) and c.id = any (array[d.consumer]) and d.total > 0
  ),
  posted as (
    insert into farebox.charges (amount_micros, spent_micros, balance_micros, idempotency_hash,
      request_fingerprint, id, consumer_id, developer, ledger, receipt_key, tool, metadata, origin)
    select amount, spent + total, available - total, idempotency, fingerprint, id, consumer, developer,
      ledger, p_receipt_key, tool, coalesce(metadata, ''), case when card > 0 then int4send(0) || int2send(card) else '' end
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
  select ord::int, case when accepted then 'posted' else 'insufficient' end as outcome, id, amount,
    available - total as balance, p_receipt_key as signed_by, coalesce(card, 0::int2) as card, ledger, consumer,
    below is not null and (not accepted or available - total < below) as is_low
  from decided
  union all
  select ord::int, case when same then 'replayed' else 'key_reused' end, id, amount_micros,
    balance_micros, receipt_key, card, null, null, false
  from prior
  loop
    ord := v_decided.ord;
    outcome := v_decided.outcome;
    charge_id := v_decided.id;
    amount := v_decided.amount;
    balance := v_decided.balance;
    signed_by := v_decided.signed_by;
    card := v_decided.card;
    return next;
    if v_decided.is_low then
      v_ledgers := v_ledgers || v_decided.ledger;
      v_consumers := v_consumers || v_decided.consumer;
      v_is_refused := v_is_refused || (outcome = 'insufficient');
      v_refused := v_refused || case when outcome = 'insufficient' then amount end;
    end if;
  end loop;

  if cardinality(v_consumers) > 0 then
    perform farebox.note_refusals(v_ledgers, v_consumers, v_refused) where true = any (v_is_refused);
    perform farebox.note_crossings(v_ledgers, v_consumers, v_is_refused);
  end if;
end $$;
