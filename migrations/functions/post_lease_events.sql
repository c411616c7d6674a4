-- Tells the developers of these leases that they expired with money left: one event each, in the form of the API. Called in
-- the transaction of the expiry, after it.
create or replace function farebox.post_lease_events(p_lease uuid[]) returns void
language plpgsql volatile
-- Probes of indexes, for the reasons in post_charges_2.sql.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$ begin
  -- One statement for all, as in expire_holds.sql.
  insert into farebox.events (ledger, account_id, type, data, created_at)
  select l.ledger, d.id, 'lease.expired', json_build_object(
    'id', farebox.wire_id('lse', l.id),
    'status', 'expired',
    'amount', farebox.wire_dollars(h.amount_micros),
    'settled', farebox.wire_dollars(h.captured_micros),
    'released', farebox.wire_dollars(l.released_micros),
    'remaining', 0,
    'expiresAt', farebox.wire_time(h.expires_at),
    'expiresIn', 0,
    'fence', l.fence,
    'tools', (select json_agg(json_build_object('name', t.name, 'price', farebox.wire_dollars(t.micros)) order by t.n)
      from unnest(l.tools, l.prices) with ordinality as t(name, micros, n)),
    'createdAt', farebox.wire_time(h.placed_at),
    'consumerId', farebox.wire_id('cns', l.consumer_id),
    'developerId', farebox.wire_id('dev', d.developer_id)), clock_timestamp()
  from unnest(p_lease) as a(id)
  join farebox.leases l on l.id = any (array[a.id])
  join farebox.accounts d on d.developer_number = any (array[l.developer])
  cross join lateral (
    select * from farebox.holds where developer = l.developer and id = l.id limit 1
  ) h;
end $$;
