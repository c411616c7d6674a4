-- Notices for workflows, each written in the transaction of the change that it announces. A notice is deleted once
-- Temporal has accepted it; the one that starts a top-up, once its workflow has claimed the row.

create table farebox.outbox (
  id bigint generated always as identity primary key,
  topic text not null,
  subject_id uuid not null,
  created_at timestamptz not null default now(),
  attempts int not null default 0,
  next_attempt_at timestamptz not null default now(),
  constraint outbox_topic_known check (topic in
    ('grant', 'invocation', 'auto_top_up', 'top_up', 'payment_reported', 'reversal_reported'))
);
comment on table farebox.outbox is
  'Each row: the row of this subject is new or has changed, so its workflow must exist and look at it. An insert '
  'wakes the relays (functions/wake_relays.sql).';
create index outbox_waiting on farebox.outbox (next_attempt_at);
-- A process that signals the workflow itself deletes the notice by its subject; no subject needs two.
create index outbox_subject on farebox.outbox (subject_id);
