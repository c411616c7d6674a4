-- Nobody told owners that their automatic top-ups had turned themselves off, so they found out when charges were refused. The
-- row now says that its owner must get a mail about it. The previous release neither sets nor reads it, and sends no such mail.
-- Nobody is told of those that were off before.
-- Locks: ACCESS EXCLUSIVE on auto_top_ups, to add two columns and for the time of a scan, to make the index. No charge reads it.
alter table farebox.auto_top_ups add column mail_owed_at timestamptz;
comment on column farebox.auto_top_ups.mail_owed_at is
  'When they turned themselves off, until a mail server has the mail to the owner about it, or for three days. Null: no mail is owed.';
alter table farebox.auto_top_ups add column mail_tried_at timestamptz;
comment on column farebox.auto_top_ups.mail_tried_at is
  'When the last attempt to send that mail began.';
create index auto_top_ups_mail_owed on farebox.auto_top_ups (mail_tried_at nulls first) where mail_owed_at is not null;
