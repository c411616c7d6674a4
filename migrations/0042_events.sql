-- Events: what happened to an account, for the account's own systems. Each is written in the transaction of the change that
-- it tells of, so there is one for each change that was committed and none for others. Its data is complete and final,
-- in the form that the API replies with, so every attempt to deliver it sends the same bytes, under any release.
-- Locks: SHARE ROW EXCLUSIVE on the tables that get triggers (functions/post_*_event.sql), for the catalogue alone. The
-- previous release runs beside it, and its changes are told too.

create table farebox.events (
  id uuid not null default uuidv7(),
  account_id uuid not null,
  type text not null,
  data json not null,
  created_at timestamptz not null default now(),
  constraint events_pkey primary key (id)
);
comment on table farebox.events is
  'Append-only, deleted after LOG_RETENTION_DAYS. No foreign key: a charge that writes an event locks no account.';
comment on column farebox.events.account_id is 'Whom it is for.';
comment on column farebox.events.type is
  'As in src/domain/events.ts. Not checked: the types of a newer release run beside this one.';
comment on column farebox.events.data is 'The payload''s `data`, as it is sent: ids with prefixes, amounts in dollars.';
