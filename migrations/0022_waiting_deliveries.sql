-- First attempts have lanes of their own (src/events/send-due.ts), and each success makes due what has failed but was not
-- hastened yet. Both are found without a look at the retries that wait beside them: there may be tens of thousands.
-- Locks: farebox.webhook_deliveries, share, while the indexes are built: about a second for each million deliveries.
create index webhook_deliveries_first on farebox.webhook_deliveries (endpoint_id, next_attempt_at)
  where status = 'waiting' and attempts = 0;
create index webhook_deliveries_not_hastened on farebox.webhook_deliveries (endpoint_id, next_attempt_at)
  where status = 'waiting' and not is_hastened;
