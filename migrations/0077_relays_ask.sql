-- Relays ask for notices every tenth of a second instead of being told by NOTIFY. That needs no session of their own, so it
-- works behind a connection pooler in transaction mode; commits that write a notice no longer wait for each other; and
-- a transaction that writes one can be prepared for a commit on several nodes. A relay says in a row that it
-- runs: `farebox reconcile --after-restore` refuses to work beside one.
-- Locks: ACCESS EXCLUSIVE on outbox, for the catalog alone. The relays of the previous release find notices within a second.
drop trigger if exists outbox_posted on farebox.outbox;
drop function if exists farebox.wake_relays;
delete from farebox.functions where name = 'wake_relays';
comment on table farebox.outbox is
  'Each row: the row of this subject is new or has changed, so its workflow must exist and look at it. Relays take rows '
  'whose time has come.';

create table farebox.relays (
  id uuid not null,
  beat_at timestamptz not null default now(),
  constraint relays_pkey primary key (id)
);
comment on table farebox.relays is 'The relays of running workers. Each renews its row every five seconds, and deletes it when it stops.';
