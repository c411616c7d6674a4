-- Accounts, API keys and tools. Each account has two roles: a consumer, who is charged, and a
-- developer, who charges for tools.

create table farebox.accounts (
  id uuid primary key,
  email text not null,
  ledger smallint not null,
  consumer_id uuid not null,
  developer_id uuid not null,
  developer_number int generated always as identity,
  consent_ceiling_micros bigint,
  processor_customer_id text,
  created_at timestamptz not null default now(),
  constraint accounts_email_unique unique (email),
  constraint accounts_consumer_unique unique (consumer_id),
  constraint accounts_developer_unique unique (developer_id),
  constraint accounts_developer_number_unique unique (developer_number),
  constraint accounts_email_is_lower_case check (email = lower(email)),
  constraint accounts_consent_ceiling_positive check (consent_ceiling_micros > 0)
);
comment on column farebox.accounts.ledger is
  'Leads the keys of every table on the charge path, so that these can be spread over databases by it.';
comment on column farebox.accounts.developer_number is
  'The developer in four bytes: every charge names it, and so does an index of charges.';
comment on column farebox.accounts.consent_ceiling_micros is
  'The most that direct top-ups may take from the saved card in a UTC month. Null: the owner has not consented.';

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
comment on table farebox.api_keys is 'Keys are stored as SHA-256 only.';
comment on column farebox.api_keys.changed_at is
  'Null until something about the key changes. Processes read recent changes several times a second, so a '
  'revoked key stops working everywhere within a second without a look-up on every charge.';
create index api_keys_account on farebox.api_keys (account_id);
create index api_keys_changed on farebox.api_keys (changed_at) where changed_at is not null;

create table farebox.tools (
  id uuid primary key,
  developer_id uuid not null,
  name text not null,
  description text not null default '',
  price_micros bigint,
  created_at timestamptz not null default now(),
  registered_at timestamptz,
  archived_at timestamptz,
  changed_at timestamptz,
  constraint tools_name_unique unique (developer_id, name),
  constraint tools_name_length check (char_length(name) between 1 and 100),
  constraint tools_price_positive check (price_micros > 0)
);
comment on table farebox.tools is 'Priced operations of a developer.';
comment on column farebox.tools.registered_at is
  'Null: the name was charged before it was registered, so the first charge does not need a registration.';
comment on column farebox.tools.archived_at is
  'Since then the tool is not listed and its price is not in force. Its past stays.';
comment on column farebox.tools.changed_at is
  'Null until something changes after the insert. Processes read recent changes, as they do for keys.';
create index tools_changed on farebox.tools (changed_at) where changed_at is not null;
