-- Mails about changes to how an owner signs in were tried once, so an intruder could wait until the mail server was away, and
-- the owner heard nothing. A row now says that such a mail is owed, until a mail server has it. The previous release neither
-- writes nor reads it, and mails as before.
-- Locks: SHARE ROW EXCLUSIVE on console.users, for the foreign key of an empty table: signing up, and turning two-factor
-- authentication on or off, wait until the migrations are applied. Signing in does not wait.
create table console.owed_mails (
  user_id uuid not null,
  kind text not null,
  id uuid not null default gen_random_uuid(),
  owed_at timestamptz not null default now(),
  tried_at timestamptz not null default now(),
  constraint owed_mails_pkey primary key (user_id, kind),
  constraint owed_mails_user_id_fkey foreign key (user_id) references console.users (id) on delete cascade
);
comment on table console.owed_mails is
  'Mails about a change to how a person signs in that no mail server has accepted yet. Deleted then, or after three days.';
comment on column console.owed_mails.id is
  'Another one with each change: a mail about an earlier change does not settle it.';
comment on column console.owed_mails.tried_at is
  'When the last attempt to send it began.';
