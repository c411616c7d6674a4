-- First attempts have lanes of their own (src/events/send-due.ts), so they are found without a look at the retries that
-- are due: there may be tens of thousands.
-- Locks: farebox.webhook_deliveries, share, while the index is built: about a second for each million deliveries.
create index webhook_deliveries_first on farebox.webhook_deliveries (endpoint_id, next_attempt_at)
  where status = 'waiting' and attempts = 0;
