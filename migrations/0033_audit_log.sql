-- The audit log: who changed access to an account or its money by hand. Triggers write it, so no code path can leave it
-- out, and neither can an operator with psql. They are deferred to the commit: an entry extends a chain of hashes, and so
-- waits for the transaction before it. At the end of a transaction this wait is short and cannot close a circle of locks.
-- Charges, holds and credits by payments write none of these rows.
-- Locks: SHARE ROW EXCLUSIVE on the tables below, for the catalogue alone. The previous release runs beside it, and its
-- changes are logged too.

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

create constraint trigger operator_actions_audit_insert after insert on farebox.operator_actions
  deferrable initially deferred for each row
  execute function farebox.audit_change('operator.acted', 'account_id', 'operator_account_id', 'kind', 'amount_micros', 'top_up_id', 'reason');
create constraint trigger accounts_audit_operator after update of operator_since on farebox.accounts
  deferrable initially deferred for each row when (old.operator_since is distinct from new.operator_since)
  execute function farebox.audit_change('operator.changed', 'id', 'operator_since');

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
