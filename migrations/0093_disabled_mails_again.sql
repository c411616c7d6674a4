-- The mail about a disabled endpoint was lost when its workflow was terminated while the mail server refused it. The
-- workflow is now started again, at intervals. The previous release leaves `mail_noted_at` null, which counts as long ago.
-- Locks: ACCESS EXCLUSIVE on webhook_endpoints, to add a column and for the time of a scan, to make the index.
alter table farebox.webhook_endpoints add column mail_noted_at timestamptz;
comment on column farebox.webhook_endpoints.mail_noted_at is
  'When the mail about its disabling became due, or its workflow was last started again for it.';
create index webhook_endpoints_mail_due on farebox.webhook_endpoints (mail_noted_at) where is_mail_due;
