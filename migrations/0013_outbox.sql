-- Notices for workflows, each written in the transaction of the change that it announces. A notice is deleted once
-- Temporal has accepted it; the one that starts a top-up, once its workflow has claimed the row.

create table farebox.outbox (
  id bigint generated always as identity,
  topic text not null,
  subject_id uuid not null,
  created_at timestamptz not null default now(),
  attempts int not null default 0,
  next_attempt_at timestamptz not null default now(),
  ledger smallint not null default -1,
  is_refused boolean,
  -- Last, as rows are looked up by their ids.
  constraint outbox_pkey primary key (id, ledger),
  constraint outbox_topic_known check (topic in
    ('grant', 'invocation', 'auto_top_up', 'top_up', 'payment_reported', 'reversal_reported', 'webhook_endpoint',
     'approval'))
);
comment on table farebox.outbox is
  'Each row: the row of this subject is new or has changed, so its workflow must exist and look at it. Relays take rows '
  'whose time has come.';
comment on column farebox.outbox.ledger is 'Of the subject. -1: it is a global row.';
comment on column farebox.outbox.is_refused is
  'auto_top_up: whether a refused charge wrote it, until it is postponed. Null: another topic.';
create index outbox_waiting on farebox.outbox (next_attempt_at);
-- A process that signals the workflow itself deletes the notice by its subject; no subject needs two.
create index outbox_subject on farebox.outbox (subject_id);

-- Relays ask for notices every tenth of a second. That needs no session of their own, so it works behind a connection
-- pooler in transaction mode; commits that write a notice do not wait for each other; and a transaction that writes one
-- can be prepared for a commit on several nodes. `farebox reconcile --after-restore` refuses to work beside a relay.
create table farebox.relays (
  id uuid not null,
  beat_at timestamptz not null default now(),
  constraint relays_pkey primary key (id)
);
comment on table farebox.relays is 'The relays of running workers. Each renews its row every five seconds, and deletes it when it stops.';
