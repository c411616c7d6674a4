-- Agents, their discovery, grants and invocations (the legacy endpoints). A search reads a bounded number of agents: it
-- looks up words in a vocabulary with the number of agents that use each, and uses only rare words with the index of
-- agents. Postgres decides on uses and revocations of grants; the workflows `grant/gnt_...` and `invocation/inv_...`
-- only remember the next step.
create extension if not exists pg_trgm;

create table farebox.agents (
  id text primary key,
  account_id uuid not null references farebox.accounts (id),
  name text not null,
  protocol text not null,
  endpoint text not null,
  description text not null default '',
  capabilities text[] not null default '{}',
  intents text[] not null default '{}',
  name_words text not null,
  search tsvector not null,
  created_at timestamptz not null default now(),
  changed_at timestamptz not null default now()
);
comment on table farebox.agents is 'Triggers keep agent_words in step (functions/agents_changed.sql).';
comment on column farebox.agents.account_id is
  'The account that registered the agent first. No other may change it.';
comment on column farebox.agents.name_words is
  'The name as searches compare it: plain words in lower case.';
comment on column farebox.agents.search is
  'Stems, by weight: A id and name, B intents and capabilities, C protocol, D description.';
-- Without a pending list, which every search would have to read completely.
create index agents_search on farebox.agents using gin (search) with (fastupdate = off);
create index agents_search_names on farebox.agents
  using gin (ts_filter(search, '{a}')) with (fastupdate = off);
create index agents_account on farebox.agents (account_id, id);

create table farebox.agent_words (
  word text collate "C" primary key,
  agents integer not null
) with (fillfactor = 70);
comment on table farebox.agent_words is
  'Every stem that an agent has, and about how many agents have it. Rarity is read here, and words with typing '
  'errors are compared with these. Much smaller than `agents`.';
-- Without numbers: a number with a wrong digit is another number.
create index agent_words_alike on farebox.agent_words using gin (word gin_trgm_ops)
  with (fastupdate = off) where word !~ '[0-9]';

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
comment on column farebox.grants.account_id is
  'The account that made the grant. No other may revoke it.';
comment on column farebox.grants.caller_id is
  'Free text. Where it names an agent, the account of that agent may use the grant too.';
comment on column farebox.grants.status is
  'An active grant past `expires_at` counts as expired before a workflow writes so.';
comment on column farebox.grants.max_uses is '1 for a one_time grant, null for a session.';
comment on column farebox.grants.request_hash is
  'SHA-256 of the request: the same idempotency key with another body is refused.';
-- The relays look for grants whose workflow is gone.
create index grants_active on farebox.grants (expires_at) where status = 'active';
-- What an account has open is counted before it may open more.
create index grants_active_of_account on farebox.grants (account_id) where status = 'active';

create table farebox.invocations (
  id uuid primary key,
  account_id uuid not null references farebox.accounts (id),
  grant_id uuid not null references farebox.grants (id),
  target_agent_id text not null references farebox.agents (id),
  capability text not null,
  payload json,
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
  heard_at timestamptz not null default now(),
  ended_at timestamptz,
  constraint invocations_status_known
    check (status in ('pending', 'running', 'succeeded', 'failed')),
  constraint invocations_ended
    check ((status in ('succeeded', 'failed')) = (ended_at is not null)),
  constraint invocations_contents check (
    (status = 'succeeded') = (result_hash is not null)
    and case when payload is null then result is null and ended_at is not null
      else (status = 'succeeded') = (result is not null) end
  ),
  constraint invocations_failure_named check (status <> 'failed' or error_code is not null),
  constraint invocations_idempotency_unique unique (account_id, idempotency_key)
);
comment on column farebox.invocations.payload is
  '`json`, not `jsonb`: stored exactly as it was sent, because the receipt has its hash. So is `result`. Null: both were '
  'archived, after it ended.';
comment on column farebox.invocations.error_code is
  'Why it failed. While it runs: why the last attempt failed.';
comment on column farebox.invocations.receipt_key is
  'The number of the master secret that signs the receipt.';
comment on column farebox.invocations.heard_at is
  'When its workflow last did something here, or a relay last made sure that it exists. The workflow is gone '
  'when an operator terminated it or Temporal was restored from an earlier day.';
create index invocations_grant on farebox.invocations (grant_id);
-- The relays look for invocations whose workflow is gone.
create index invocations_going_on on farebox.invocations (heard_at)
  where status in ('pending', 'running');
create index invocations_open_of_account on farebox.invocations (account_id)
  where status in ('pending', 'running');
