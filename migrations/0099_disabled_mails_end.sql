-- The mail about a disabled endpoint was tried each minute for ever, or was owed without end while no mail server was
-- configured. It is now given up after three days, like the other mails that are owed. The previous release leaves
-- `mail_owed_at` null; the first attempt of this release sets it.
-- Locks: ACCESS EXCLUSIVE on webhook_endpoints, to add a column.
alter table farebox.webhook_endpoints add column mail_owed_at timestamptz;
comment on column farebox.webhook_endpoints.mail_owed_at is
  'Since when the mail about its disabling is due. Null: none is due, or the previous release made it due and no attempt was made.';
comment on column farebox.webhook_endpoints.mail_noted_at is
  'When the last attempt to send the mail about its disabling began. Null: there was none.';
