-- The topic of notices for approvals. In a file of its own, because 0043_webhook_endpoints.sql lists all topics too.
-- Locks: ACCESS EXCLUSIVE on the outbox, whose few rows are read. The previous release runs beside it: its relays leave
-- topics that they do not know to those of this release.

alter table farebox.outbox drop constraint outbox_topic_known;
alter table farebox.outbox add constraint outbox_topic_known check (topic in
  ('grant', 'invocation', 'auto_top_up', 'top_up', 'payment_reported', 'reversal_reported', 'webhook_endpoint',
   'approval'));
