-- The audit log: who changed access to an account or its money by hand. Triggers write it, so no code path can leave it
-- out, and neither can an operator with psql. They are deferred to the commit: an entry extends a chain of hashes, and so
-- waits for the transaction before it. At the end of a transaction this wait is short and cannot close a circle of locks.
-- Charges, holds and credits by payments write none of these rows. Names and metadata, which can contain any text, are left out,
-- and so are the URLs of webhook endpoints, which can hold secrets.

create table farebox.audit_entries (
  number bigint not null,
  happened_at timestamptz not null,
  action text not null,
  account_id uuid,
  subject_id uuid,
  details jsonb not null,
  program text not null,
  database_role text not null,
  hash bytea not null,
  constraint audit_entries_pkey primary key (number),
  constraint audit_entries_hash_is_sha256 check (octet_length(hash) = 32)
);
comment on table farebox.audit_entries is
  'Append-only (functions/refuse_change.sql). No foreign keys: an entry outlives what it is about.';
comment on column farebox.audit_entries.number is '1, 2, 3, ... in the order of commits, without gaps.';
comment on column farebox.audit_entries.happened_at is
  'When the transaction began: entries of one transaction have the same time.';
comment on column farebox.audit_entries.subject_id is 'The row that changed; the action says of which table.';
comment on column farebox.audit_entries.details is
  'Some columns of that row. `before` has the earlier values of those that changed.';
comment on column farebox.audit_entries.program is
  'application_name of the connection: `farebox api`, `farebox key revoke`, `psql`.';
comment on column farebox.audit_entries.hash is
  'Made from the hash before it and this entry (functions/audit_hash.sql).';
create index audit_entries_account on farebox.audit_entries (account_id, number);

-- functions/audit_change.sql replaces it before this transaction commits. Arguments: the action, the column that leads to
-- the account, and the columns that go into the details.
create function farebox.audit_change() returns trigger language plpgsql as 'begin return null; end';

create constraint trigger accounts_audit_insert after insert on farebox.accounts
  deferrable initially deferred for each row
  execute function farebox.audit_change('account.created', 'id', 'consent_ceiling_micros');
create constraint trigger accounts_audit_consent after update of consent_ceiling_micros on farebox.accounts
  deferrable initially deferred for each row
  when (old.consent_ceiling_micros is distinct from new.consent_ceiling_micros)
  execute function farebox.audit_change('consent.changed', 'id', 'consent_ceiling_micros');
create constraint trigger accounts_audit_operator after update of operator_since on farebox.accounts
  deferrable initially deferred for each row when (old.operator_since is distinct from new.operator_since)
  execute function farebox.audit_change('operator.changed', 'id', 'operator_since');
create constraint trigger accounts_audit_keys_charge after update of keys_charge, developer_day_micros on farebox.accounts
  deferrable initially deferred for each row
  when ((old.keys_charge, old.developer_day_micros) is distinct from (new.keys_charge, new.developer_day_micros))
  execute function farebox.audit_change('account_keys.changed', 'id', 'keys_charge', 'developer_day_micros');
create constraint trigger accounts_audit_card after update of processor_card_id on farebox.accounts
  deferrable initially deferred for each row
  when (old.processor_card_id is distinct from new.processor_card_id)
  execute function farebox.audit_change('card.chosen', 'id', 'processor_card_id');

create constraint trigger api_keys_audit_insert after insert on farebox.api_keys
  deferrable initially deferred for each row
  execute function farebox.audit_change('key.created', 'account_id', 'kind', 'last_four');
create constraint trigger api_keys_audit_expiry after update of expires_at on farebox.api_keys
  deferrable initially deferred for each row when (old.expires_at is distinct from new.expires_at)
  execute function farebox.audit_change('key.expiry_set', 'account_id', 'kind', 'last_four', 'expires_at');
create constraint trigger api_keys_audit_revoke after update of revoked_at on farebox.api_keys
  deferrable initially deferred for each row when (old.revoked_at is distinct from new.revoked_at)
  execute function farebox.audit_change('key.revoked', 'account_id', 'kind', 'last_four', 'revoked_at');

create constraint trigger spend_keys_audit_insert after insert on farebox.spend_keys
  deferrable initially deferred for each row
  execute function farebox.audit_change('spend_key.created', 'account_id', 'budget', 'last_four', 'expires_at');
create constraint trigger spend_keys_audit_expiry after update of expires_at on farebox.spend_keys
  deferrable initially deferred for each row when (old.expires_at is distinct from new.expires_at)
  execute function farebox.audit_change('spend_key.expiry_set', 'account_id', 'budget', 'last_four', 'expires_at');
create constraint trigger spend_keys_audit_revoke after update of revoked_at on farebox.spend_keys
  deferrable initially deferred for each row when (old.revoked_at is distinct from new.revoked_at)
  execute function farebox.audit_change('spend_key.revoked', 'account_id', 'budget', 'last_four', 'revoked_at');

-- Raising a limit or allowing leases lets a key spend more. Charges change none of these columns, so their updates fire no
-- trigger.
create constraint trigger budget_details_audit_insert after insert on farebox.budget_details
  deferrable initially deferred for each row
  execute function farebox.audit_change('budget.created', 'consumer_id', 'parent_id', 'limit_micros',
    'window_unit', 'window_limit_micros', 'max_per_call_micros', 'allow_leases', 'max_lease_micros', 'tools', 'developers',
    'approve_developers', 'approved_developers', 'may_delegate', 'expires_at');
create constraint trigger budgets_audit_limits after update of limit_micros, window_unit, window_limit_micros
  on farebox.budgets deferrable initially deferred for each row
  when ((old.limit_micros, old.window_unit, old.window_limit_micros)
    is distinct from (new.limit_micros, new.window_unit, new.window_limit_micros))
  execute function farebox.audit_change('budget.changed', 'consumer_id', 'limit_micros', 'window_unit',
    'window_limit_micros');
create constraint trigger budget_details_audit_update after update of max_per_call_micros, allow_leases,
    max_lease_micros, tools, developers, approve_developers, approved_developers, may_delegate, expires_at
  on farebox.budget_details deferrable initially deferred for each row
  when ((old.max_per_call_micros, old.allow_leases, old.max_lease_micros, old.tools, old.developers,
      old.approve_developers, old.approved_developers, old.may_delegate, old.expires_at)
    is distinct from (new.max_per_call_micros, new.allow_leases, new.max_lease_micros, new.tools, new.developers,
      new.approve_developers, new.approved_developers, new.may_delegate, new.expires_at))
  execute function farebox.audit_change('budget.changed', 'consumer_id', 'max_per_call_micros', 'allow_leases',
    'max_lease_micros', 'tools', 'developers', 'approve_developers', 'approved_developers', 'may_delegate', 'expires_at');
create constraint trigger budget_details_audit_close after update of closed_at on farebox.budget_details
  deferrable initially deferred for each row when (old.closed_at is distinct from new.closed_at)
  execute function farebox.audit_change('budget.closed', 'consumer_id', 'closed_at');

create constraint trigger approvals_audit_decision after update of status on farebox.approvals
  deferrable initially deferred for each row
  when (old.status is distinct from new.status and new.status <> 'expired')
  execute function farebox.audit_change('approval.decided', 'account_id', 'code', 'budget', 'scope', 'amount_micros',
    'decision', 'limit_micros', 'raised_to_micros');

create constraint trigger auto_top_ups_audit_insert after insert on farebox.auto_top_ups
  deferrable initially deferred for each row
  execute function farebox.audit_change('auto_top_up.set', 'consumer_id', 'threshold_micros', 'amount_micros', 'ceiling_micros');
create constraint trigger auto_top_ups_audit_update after update of threshold_micros, amount_micros, ceiling_micros
  on farebox.auto_top_ups deferrable initially deferred for each row
  when ((old.threshold_micros, old.amount_micros, old.ceiling_micros)
    is distinct from (new.threshold_micros, new.amount_micros, new.ceiling_micros))
  execute function farebox.audit_change('auto_top_up.set', 'consumer_id', 'threshold_micros', 'amount_micros', 'ceiling_micros');
create constraint trigger auto_top_ups_audit_delete after delete on farebox.auto_top_ups
  deferrable initially deferred for each row
  execute function farebox.audit_change('auto_top_up.removed', 'consumer_id');

create constraint trigger movements_audit_adjustment after insert on farebox.movements
  deferrable initially deferred for each row when (new.kind = 'adjustment')
  execute function farebox.audit_change('balance.adjusted', 'consumer_id', 'amount_micros', 'reason');
create constraint trigger top_ups_audit_manual after insert on farebox.top_ups
  deferrable initially deferred for each row when (new.method = 'manual')
  execute function farebox.audit_change('balance.opened', 'account_id', 'amount_micros');
create constraint trigger reversals_audit_request after insert on farebox.reversals
  deferrable initially deferred for each row when (new.kind = 'refund' and new.status = 'requested')
  execute function farebox.audit_change('refund.requested', 'consumer_id', 'amount_micros', 'top_up_id');
-- When the refund that dismissed a warning fails, dismissed_at becomes null again. The log has the dismissal, and nobody decided
-- the rest, so that change has no entry.
create constraint trigger reversals_audit_dismissal after update of dismissed_at on farebox.reversals
  deferrable initially deferred for each row
  when (new.dismissed_at is not null and old.dismissed_at is distinct from new.dismissed_at)
  execute function farebox.audit_change('warning.dismissed', 'consumer_id', 'amount_micros', 'top_up_id');

create constraint trigger operator_actions_audit_insert after insert on farebox.operator_actions
  deferrable initially deferred for each row
  execute function farebox.audit_change('operator.acted', 'account_id', 'operator_account_id', 'kind', 'amount_micros', 'top_up_id', 'reason');

create constraint trigger users_audit_account after update of account_id on console.users
  deferrable initially deferred for each row when (old.account_id is distinct from new.account_id)
  execute function farebox.audit_change('account.claimed', 'account_id');
create constraint trigger users_audit_two_factor after update of two_factor_enabled on console.users
  deferrable initially deferred for each row
  when (old.two_factor_enabled is distinct from new.two_factor_enabled)
  execute function farebox.audit_change('two_factor.changed', 'account_id', 'two_factor_enabled');
create constraint trigger credentials_audit_insert after insert on console.credentials
  deferrable initially deferred for each row when (new.password is not null)
  execute function farebox.audit_change('password.set', 'user_id');
create constraint trigger credentials_audit_update after update of password on console.credentials
  deferrable initially deferred for each row when (old.password is distinct from new.password)
  execute function farebox.audit_change('password.set', 'user_id');
create constraint trigger sessions_audit_insert after insert on console.sessions
  deferrable initially deferred for each row
  execute function farebox.audit_change('session.started', 'user_id');
create constraint trigger sessions_audit_delete after delete on console.sessions
  deferrable initially deferred for each row
  execute function farebox.audit_change('session.ended', 'user_id');
create constraint trigger sign_in_links_audit_insert after insert on console.sign_in_links
  deferrable initially deferred for each row
  execute function farebox.audit_change('sign_in_link.created', 'email');
create constraint trigger passkeys_audit_insert after insert on console.passkeys
  deferrable initially deferred for each row
  execute function farebox.audit_change('passkey.added', 'user_id', 'name');
create constraint trigger passkeys_audit_delete after delete on console.passkeys
  deferrable initially deferred for each row
  execute function farebox.audit_change('passkey.removed', 'user_id', 'name');

-- Where an account's events are sent is access to them.
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
