-- The charge statement alone, 100 charges a call, as src/store/charges/post-charges.ts calls it. The consumers were
-- drawn beforehand (bench.batches), so that drawing them costs one probe.
\set n random(1, :batches)
select p.ord, p.outcome, p.charge_id, p.amount, p.balance, p.signed_by
from bench.batches b cross join lateral farebox.post_charges(
  b.ledgers, b.consumers, array(select uuidv7() from generate_series(1, 100)),
  array_fill(:developer::int, array[100]), array_fill('search'::text, array[100]),
  array_fill(100::bigint, array[100]), array_fill(null::bigint, array[100]),
  array_fill(null::bigint, array[100]), array_fill(null::text, array[100]),
  1::smallint, uuidv7(interval '-62 days'), uuidv7(interval '1 day')
) p
where b.n = :n::int;
