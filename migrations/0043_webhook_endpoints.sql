-- Webhook endpoints: where an account wants its events sent, and the deliveries of each. A delivery is written with its
-- event, in the same transaction (functions/post_deliveries.sql), so none is lost and none exists for what was rolled
-- back. No foreign keys lead to endpoints: a charge that writes an event waits for no endpoint that is being deleted.
-- Locks: ACCESS EXCLUSIVE on the outbox, for its one check over the few waiting notices. The previous release runs beside
-- it: its changes have deliveries too, and relays of this release start the workflows.

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
create index webhook_endpoints_account on farebox.webhook_endpoints (account_id, id);

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
  constraint webhook_deliveries_pkey primary key (endpoint_id, event_id),
  constraint webhook_deliveries_status_known check (status in ('waiting', 'delivered', 'failed')),
  constraint webhook_deliveries_wait_for_a_time check ((status = 'waiting') = (next_attempt_at is not null)),
  constraint webhook_deliveries_attempts_timed check ((attempts = 0) = (attempted_at is null))
) with (fillfactor = 80);
comment on table farebox.webhook_deliveries is
  'One event for one endpoint, and its last attempt. Deleted with either.';
comment on column farebox.webhook_deliveries.response_body is 'Its first characters.';
comment on column farebox.webhook_deliveries.error is 'Why there was no answer.';
create index webhook_deliveries_event on farebox.webhook_deliveries (event_id);
create index webhook_deliveries_waiting on farebox.webhook_deliveries (endpoint_id, next_attempt_at)
  where status = 'waiting';
-- Once a minute, relays look for those that wait although they are due.
create index webhook_deliveries_due on farebox.webhook_deliveries (next_attempt_at) where status = 'waiting';

alter table farebox.outbox drop constraint outbox_topic_known;
alter table farebox.outbox add constraint outbox_topic_known check (topic in
  ('grant', 'invocation', 'auto_top_up', 'top_up', 'payment_reported', 'reversal_reported', 'webhook_endpoint'));

-- Where an account's events are sent is access to them, so the audit log has it; not the URLs, which may hold secrets.
create constraint trigger webhook_endpoints_audit_insert after insert on farebox.webhook_endpoints
  deferrable initially deferred for each row
  execute function farebox.audit_change('webhook_endpoint.created', 'account_id');
create constraint trigger webhook_endpoints_audit_url after update of url on farebox.webhook_endpoints
  deferrable initially deferred for each row when (old.url <> new.url)
  execute function farebox.audit_change('webhook_endpoint.url_changed', 'account_id');
create constraint trigger webhook_endpoints_audit_secret after update of secret on farebox.webhook_endpoints
  deferrable initially deferred for each row when (old.secret <> new.secret)
  execute function farebox.audit_change('webhook_endpoint.secret_rolled', 'account_id', 'secret');
create constraint trigger webhook_endpoints_audit_delete after delete on farebox.webhook_endpoints
  deferrable initially deferred for each row
  execute function farebox.audit_change('webhook_endpoint.deleted', 'account_id');
