-- The operators' page lists the disputed top-ups and the failing webhook endpoints that it counts, and metrics count them every few
-- seconds. Each read all reversals, or all endpoints, to find the few.
-- Locks: SHARE on reversals and webhook_endpoints, for as long as it takes to read them: credits, refunds and deliveries wait.
-- Charges only read reversals. The previous release may run beside it.

create index reversals_open on farebox.reversals (top_up_id) where status = 'open';
create index webhook_endpoints_failing on farebox.webhook_endpoints (failing_since)
  where status = 'active' and failing_since is not null;
