-- Mails to owners were lost when the process was killed between the change and the mail, and when the mail server refused
-- for a moment. The change now notes that its mail is due, and what sent the mail clears that. The previous release neither
-- sets nor reads it, and mails as before. And the notice of an automatic top-up says whether a refused charge wrote it,
-- which asks at any balance; in the notices written before, that is null.
-- Locks: ACCESS EXCLUSIVE on the three tables, for a change of the catalog alone.
alter table farebox.top_ups add column is_mail_due boolean not null default false;
comment on column farebox.top_ups.is_mail_due is
  'Automatic top-ups: the bank wants the payment confirmed, and no mail server has accepted the mail to the owner yet.';
alter table farebox.webhook_endpoints add column is_mail_due boolean not null default false;
comment on column farebox.webhook_endpoints.is_mail_due is
  'It was disabled because of its answers, and no mail server has accepted the mail to its owner yet.';
alter table farebox.outbox add column is_refused boolean;
comment on column farebox.outbox.is_refused is
  'auto_top_up: whether a refused charge wrote it, until it is postponed. Null: written before this was recorded, or another topic.';
