-- Writes a delivery of each new event for each endpoint of its account that wants its type, and a notice that wakes the
-- endpoint's workflow. An account without endpoints costs one probe of an index. A test is sent only where it was asked for.
create or replace function farebox.post_deliveries() returns trigger language plpgsql
-- Probes of indexes, for the reasons in post_charges_2.sql.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
  with deliveries as (
    insert into farebox.webhook_deliveries (ledger, endpoint_id, event_id)
    select p.ledger, e.id, p.id
    from posted p join farebox.webhook_endpoints e on e.account_id = any (array[p.account_id])
    where e.status = 'active' and (e.types is null or p.type = any (e.types))
      and p.type <> 'webhook_endpoint.test'
    returning ledger, endpoint_id
  )
  insert into farebox.outbox (ledger, topic, subject_id)
  select distinct ledger, 'webhook_endpoint', endpoint_id from deliveries;
  return null;
end $$;

create or replace trigger events_posted after insert on farebox.events
  referencing new table as posted for each statement execute function farebox.post_deliveries();
