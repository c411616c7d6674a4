-- The charge statement of the usual case alone, with 100 charges per call, as postFittingCharges in
-- src/store/charges/post-charges.ts calls it. The consumers are drawn and grouped beforehand (bench.batches), so reading
-- them costs one probe.
\set n random(1, :batches)
select farebox.post_fitting_groups_2(
  b.ledgers, b.consumers, b.totals, '{}'::int[], '{}'::int[], '{}'::bigint[], b.groups, b.through, '{}'::int[],
  array(select uuidv7() from generate_series(1, 100)),
  array_fill(:developer::int, array[100]), array_fill('search'::text, array[100]),
  array_fill(:amount::bigint, array[100]), '{}'::smallint[], array_fill(null::bigint, array[100]),
  array_fill(null::bigint, array[100]), array_fill(null::text, array[100]),
  1::smallint, uuidv7(interval '-62 days'), uuidv7(interval '1 day')
) as balances
from bench.batches b
where b.n = :n::int;
