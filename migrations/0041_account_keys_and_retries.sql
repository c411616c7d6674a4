-- The keys of an account can be closed for charging, or given a ceiling for each developer and day, because every tool
-- server sees them. The ceiling needs no second mechanism: what a developer charges to such keys goes through a budget of
-- its own, with a spend key that nobody holds. So it is as exact as any budget, and charges without a ceiling pay nothing.
-- The creation of budgets and spend keys takes idempotency keys.
-- Locks: ACCESS EXCLUSIVE, for the catalogue alone, and indexes of tables that are small so far.

alter table farebox.accounts add column keys_charge text not null default 'open',
  add column developer_day_micros bigint,
  add constraint accounts_keys_charge_known check (keys_charge in ('open', 'closed')),
  add constraint accounts_developer_day_not_negative check (developer_day_micros >= 0);
comment on column farebox.accounts.keys_charge is 'Whether consumer keys of the account can be charged. Spend keys always can.';
comment on column farebox.accounts.developer_day_micros is
  'What one developer can charge to consumer keys of the account in one UTC day. Null: no ceiling.';
create constraint trigger accounts_audit_keys_charge after update of keys_charge, developer_day_micros on farebox.accounts
  deferrable initially deferred for each row
  when ((old.keys_charge, old.developer_day_micros) is distinct from (new.keys_charge, new.developer_day_micros))
  execute function farebox.audit_change('account_keys.changed', 'id', 'keys_charge', 'developer_day_micros');

alter table farebox.spend_keys add column developer int, add column idempotency_hash bytea, add column request_hash bytea;
comment on column farebox.spend_keys.developer is
  'Nobody holds this key: under accounts.developer_day_micros, what this developer charges to keys of the account counts '
  'as its. Null: a key that was handed out.';
comment on column farebox.spend_keys.idempotency_hash is
  'Of the caller and its idempotency key. The key itself is derived from it, so that a retry can show it again.';
create unique index spend_keys_developer on farebox.spend_keys (ledger, consumer_id, developer) where developer is not null;
create unique index spend_keys_idempotency on farebox.spend_keys (ledger, consumer_id, idempotency_hash)
  where idempotency_hash is not null;

alter table farebox.budget_details add column idempotency_hash bytea, add column request_hash bytea;
create unique index budget_details_idempotency on farebox.budget_details (ledger, consumer_id, idempotency_hash)
  where idempotency_hash is not null;
