-- Grants and invocations of agents (legacy endpoints, specification section 4.4), and the outbox that tells
-- workflows of them. Postgres decides about uses and revocations; the workflows `grant/gnt_…` and
-- `invocation/inv_…` only remember what comes next.
create table farebox.grants (
  id uuid primary key,
  account_id uuid not null references farebox.accounts (id),
  caller_id text not null,
  target_agent_id text not null references farebox.agents (id),
  type text not null,
  status text not null default 'active',
  uses integer not null default 0,
  max_uses integer,
  idempotency_key text,
  request_hash bytea not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  ended_at timestamptz,
  constraint grants_type_known check (type in ('one_time', 'session', 'limited')),
  constraint grants_status_known check (status in ('active', 'used', 'revoked', 'expired')),
  constraint grants_limit_named check ((type = 'session') = (max_uses is null)),
  constraint grants_not_overused check (uses between 0 and max_uses),
  constraint grants_ended check ((status = 'active') = (ended_at is null)),
  constraint grants_idempotency_unique unique (account_id, idempotency_key)
);
comment on column farebox.grants.account_id is 'Who made the grant, and alone may revoke it.';
comment on column farebox.grants.caller_id is
  'Free text. Where it names an agent, the account of that agent may use the grant too.';
comment on column farebox.grants.max_uses is '1 for a one_time grant, null for a session.';
comment on column farebox.grants.status is
  'An active grant that has run out by `expires_at` counts as expired before a workflow writes so.';
comment on column farebox.grants.request_hash is
  'SHA-256 of what was asked for: the same idempotency key with another body is refused.';

create table farebox.invocations (
  id uuid primary key,
  account_id uuid not null references farebox.accounts (id),
  grant_id uuid not null references farebox.grants (id),
  target_agent_id text not null references farebox.agents (id),
  capability text not null,
  payload json not null,
  status text not null default 'pending',
  attempts integer not null default 0,
  result json,
  error_code text,
  error_message text,
  idempotency_key text,
  request_hash bytea not null,
  result_hash bytea,
  receipt_key smallint not null,
  created_at timestamptz not null default now(),
  ended_at timestamptz,
  constraint invocations_status_known
    check (status in ('pending', 'running', 'succeeded', 'failed')),
  constraint invocations_ended
    check ((status in ('succeeded', 'failed')) = (ended_at is not null)),
  constraint invocations_result check (
    (status = 'succeeded') = (result is not null) and (status = 'succeeded') = (result_hash is not null)
  ),
  constraint invocations_failure_named check (status <> 'failed' or error_code is not null),
  constraint invocations_idempotency_unique unique (account_id, idempotency_key)
);
comment on column farebox.invocations.payload is
  '`json`, not `jsonb`: kept as it was sent, since the receipt has its hash. So is `result`.';
comment on column farebox.invocations.error_code is
  'Why it failed, or while it runs what the last attempt met.';
comment on column farebox.invocations.receipt_key is 'Number of the master secret that signs the receipt.';
create index invocations_grant on farebox.invocations (grant_id);

-- What workflows are to be told, written in the transaction that makes it true; deleted when Temporal has
-- taken it.
create table farebox.outbox (
  id bigint generated always as identity primary key,
  workflow text not null,
  subject_id uuid not null,
  created_at timestamptz not null default now(),
  attempts int not null default 0,
  next_attempt_at timestamptz not null default now(),
  constraint outbox_workflow_known check (workflow in ('grant', 'invocation'))
);
create index outbox_waiting on farebox.outbox (next_attempt_at);
comment on table farebox.outbox is
  'Each row: the row of this subject is new or has changed, so its workflow must exist and look at it.';

create function farebox.wake_relays() returns trigger language plpgsql as $$
begin
  perform pg_notify('farebox_outbox', '');
  return null;
end $$;

-- What is left to its writer for a while wakes nobody.
create trigger outbox_posted after insert on farebox.outbox
  for each row when (new.next_attempt_at <= now()) execute function farebox.wake_relays();
