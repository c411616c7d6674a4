-- Who may do what: one account is one sign-up and holds both roles, a consumer and a developer.
-- Everything lives in one schema, so that Farebox can share a database with its operator.
create schema if not exists farebox;

create table farebox.accounts (
  id uuid primary key,
  email text not null,
  ledger smallint not null,
  consumer_id uuid not null,
  developer_id uuid not null,
  consent_ceiling_micros bigint,
  processor_customer_id text,
  created_at timestamptz not null default now(),
  constraint accounts_email_unique unique (email),
  constraint accounts_consumer_unique unique (consumer_id),
  constraint accounts_developer_unique unique (developer_id),
  constraint accounts_email_is_lower_case check (email = lower(email)),
  constraint accounts_consent_ceiling_positive check (consent_ceiling_micros > 0)
);
comment on column farebox.accounts.consent_ceiling_micros is
  'What direct top-ups may take from the saved card in a UTC month; null: the owner has not consented.';
comment on column farebox.accounts.ledger is
  'The consumer''s ledger: leads the keys of every table on the charge path, so that these can be distributed by it.';

-- Keys are stored as SHA-256 only. `changed_at` is null until something about a key changes; each
-- process re-reads the recently changed ones several times a second, which is how a revoked key
-- stops working everywhere within one second without a look-up on every charge.
create table farebox.api_keys (
  id uuid primary key,
  hash bytea not null,
  kind text not null,
  account_id uuid not null references farebox.accounts (id),
  last_four text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  changed_at timestamptz,
  last_used_at timestamptz,
  constraint api_keys_hash_unique unique (hash),
  constraint api_keys_hash_is_sha256 check (octet_length(hash) = 32),
  constraint api_keys_kind_known check (kind in ('consumer', 'developer', 'legacy'))
) with (fillfactor = 90);
create index api_keys_account on farebox.api_keys (account_id);
create index api_keys_changed on farebox.api_keys (changed_at) where changed_at is not null;
