-- Invocations and grants whose workflow is gone: an operator terminated it, or Temporal was restored from an
-- earlier day. The relays look for them, so that each ends all the same.
alter table farebox.invocations add column heard_at timestamptz not null default now();
comment on column farebox.invocations.heard_at is
  'When its workflow last did something here, or a relay last saw to it that there is one.';
create index invocations_going_on on farebox.invocations (heard_at)
  where status in ('pending', 'running');
create index grants_active on farebox.grants (expires_at) where status = 'active';

-- Who has told a workflow himself deletes the notice by its subject, and no subject needs two.
create index outbox_subject on farebox.outbox (subject_id);
