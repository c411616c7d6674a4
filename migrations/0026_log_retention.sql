-- The log of Stripe's events is pruned by age (src/store/prune-logs.ts). Webhooks wait while the index is built, about
-- a second for each million events; Stripe repeats those that do not get through.

create index processor_events_received on farebox.processor_events (received_at);
