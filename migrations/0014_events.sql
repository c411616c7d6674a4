-- Events: what happened to an account, for the account's own systems. Each is written in the transaction of the change that
-- it tells of (functions/post_*_event.sql), so there is one for each change that was committed and none for others. Its data
-- is complete and final, in the form that the API replies with, so every attempt to deliver it sends the same bytes, under
-- any release.

create table farebox.events (
  id uuid not null default uuidv7(),
  account_id uuid not null,
  type text not null,
  data json not null,
  created_at timestamptz not null default now(),
  ledger smallint not null default -1,
  constraint events_pkey primary key (id, ledger)
);
comment on table farebox.events is
  'Append-only, deleted after LOG_RETENTION_DAYS. No foreign key: a charge that writes an event locks no account.';
comment on column farebox.events.account_id is 'Whom it is for.';
comment on column farebox.events.type is
  'As in src/domain/events.ts. Not checked: the types of a newer release run beside this one.';
comment on column farebox.events.data is 'The payload''s `data`, as it is sent: ids with prefixes, amounts in dollars.';
comment on column farebox.events.ledger is
  'Of the change that it tells of, which is not always that of its account. -1: a global row changed.';

-- Where an account wants its events sent, and the deliveries of each. A delivery is written with its event, in the same
-- transaction (functions/post_deliveries.sql), so none is lost and none exists for what was rolled back. No foreign keys lead
-- to endpoints: a charge that writes an event waits for no endpoint that is being deleted.
create table farebox.webhook_endpoints (
  id uuid not null,
  account_id uuid not null references farebox.accounts (id),
  url text not null,
  types text[],
  description text not null default '',
  status text not null default 'active',
  disabled_reason text,
  secret int not null default 1,
  secret_master int not null,
  previous_secret int,
  previous_secret_master int,
  previous_secret_until timestamptz,
  failing_since timestamptz,
  created_at timestamptz not null default now(),
  idempotency_hash bytea,
  request_hash bytea,
  roll_idempotency_hash bytea,
  roll_request_hash bytea,
  mail_owed_at timestamptz,
  mail_tried_at timestamptz,
  constraint webhook_endpoints_pkey primary key (id),
  constraint webhook_endpoints_status_known check (status in ('active', 'disabled')),
  constraint webhook_endpoints_reason_known check (
    case status when 'active' then disabled_reason is null
      else disabled_reason is not null and disabled_reason in ('owner', 'failing', 'gone') end),
  constraint webhook_endpoints_previous_secret_whole check (
    (previous_secret is null) = (previous_secret_until is null)
    and (previous_secret is null) = (previous_secret_master is null))
);
comment on column farebox.webhook_endpoints.types is 'The types of events that it gets. Null: all.';
comment on column farebox.webhook_endpoints.disabled_reason is
  'owner: by the owner. failing: it has failed for days. gone: it answered 410.';
comment on column farebox.webhook_endpoints.secret is
  'The number of its signing secret, from 1. The secret is derived from this and the master secret (src/events/signing.ts) '
  'and stored nowhere.';
comment on column farebox.webhook_endpoints.secret_master is 'The number of the master secret that it is derived from.';
comment on column farebox.webhook_endpoints.previous_secret is
  'The secret before it was rolled, which also signs until previous_secret_until.';
comment on column farebox.webhook_endpoints.failing_since is
  'Of the first failed attempt since the last one that succeeded. Null: the last attempt succeeded.';
comment on column farebox.webhook_endpoints.idempotency_hash is 'Of the account and its idempotency key.';
comment on column farebox.webhook_endpoints.roll_idempotency_hash is
  'Of the last roll of the secret: its repetition gets the same secret, and rolls nothing.';
comment on column farebox.webhook_endpoints.mail_owed_at is
  'When it was disabled because of its answers, until a mail server has the mail to its owner about it, or for three days. '
  'Null: no mail is owed.';
comment on column farebox.webhook_endpoints.mail_tried_at is
  'When the last attempt to send that mail began. Null: there was none since it was disabled, or ever.';
create index webhook_endpoints_account on farebox.webhook_endpoints (account_id, id);
create unique index webhook_endpoints_idempotency on farebox.webhook_endpoints (idempotency_hash)
  where idempotency_hash is not null;
create index webhook_endpoints_mail_owed on farebox.webhook_endpoints (mail_tried_at nulls first) where mail_owed_at is not null;
-- Operators list the failing ones, and metrics count them every few seconds.
create index webhook_endpoints_failing on farebox.webhook_endpoints (failing_since)
  where status = 'active' and failing_since is not null;

create table farebox.webhook_deliveries (
  endpoint_id uuid not null,
  event_id uuid not null,
  status text not null default 'waiting',
  attempts int not null default 0,
  next_attempt_at timestamptz default now(),
  attempted_at timestamptz,
  duration_ms int,
  response_status int,
  response_body text,
  error text,
  ledger smallint not null default -1,
  is_hastened boolean not null default false,
  constraint webhook_deliveries_pkey primary key (endpoint_id, event_id, ledger),
  constraint webhook_deliveries_status_known check (status in ('waiting', 'delivered', 'failed')),
  constraint webhook_deliveries_wait_for_a_time check ((status = 'waiting') = (next_attempt_at is not null)),
  constraint webhook_deliveries_attempts_timed check ((attempts = 0) = (attempted_at is null))
) with (fillfactor = 80);
comment on table farebox.webhook_deliveries is
  'One event for one endpoint, and its last attempt. Deleted with either.';
comment on column farebox.webhook_deliveries.response_body is 'Its first characters.';
comment on column farebox.webhook_deliveries.error is 'Why there was no answer.';
comment on column farebox.webhook_deliveries.ledger is 'Of the event.';
-- A receiver that refuses one event and accepts others must not get the refused one again with each that it accepts.
comment on column farebox.webhook_deliveries.is_hastened is
  'It was made due before its time, when the endpoint accepted another one after a failure.';
create index webhook_deliveries_event on farebox.webhook_deliveries (event_id);
create index webhook_deliveries_waiting on farebox.webhook_deliveries (endpoint_id, next_attempt_at)
  where status = 'waiting';
-- Once a minute, relays look for those that wait although they are due.
create index webhook_deliveries_due on farebox.webhook_deliveries (next_attempt_at) where status = 'waiting';
