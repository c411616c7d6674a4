-- Whether a delivery was made due before its time because its endpoint was back. That happens to a delivery once: a receiver
-- that refuses one event and accepts others got the refused one again with each that it accepted, for five days.
-- Locks: farebox.webhook_deliveries exclusively, for a change of the catalog alone.

alter table farebox.webhook_deliveries add column is_hastened boolean not null default false;
comment on column farebox.webhook_deliveries.is_hastened is
  'It was made due before its time, when the endpoint accepted another one after a failure.';
