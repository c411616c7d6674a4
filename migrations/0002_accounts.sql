-- Accounts, API keys and tools. Each account has two roles: a consumer, who is charged, and a developer, who charges for
-- tools. An account may have a test account, with play money of its own, in ledgers from 2048 on. So every statement about
-- money serves both modes, and none can add live and test money together: a charge names one ledger, and everything that
-- it writes leads with it.

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
  return_url text,
  operator_since timestamptz,
  live_account_id uuid references farebox.accounts (id),
  keys_charge text not null default 'open',
  developer_day_micros bigint,
  processor_card_id text,
  constraint accounts_email_unique unique (email),
  constraint accounts_consumer_unique unique (consumer_id),
  constraint accounts_developer_unique unique (developer_id),
  constraint accounts_developer_number_unique unique (developer_number),
  constraint accounts_email_is_lower_case check (email = lower(email)),
  constraint accounts_consent_ceiling_positive check (consent_ceiling_micros > 0),
  constraint accounts_return_url_short check (length(return_url) <= 2000),
  constraint accounts_keys_charge_known check (keys_charge in ('open', 'closed')),
  constraint accounts_developer_day_not_negative check (developer_day_micros >= 0),
  constraint accounts_mode_is_in_ledger check ((live_account_id is not null) = (ledger >= 2048)),
  -- No address looks like this, so nobody can sign in as a test account.
  constraint accounts_test_has_no_address check (
    case when live_account_id is null then email not like 'test:%' else email = 'test:' || live_account_id end),
  constraint accounts_test_moves_no_money check (
    live_account_id is null or num_nonnulls(consent_ceiling_micros, processor_customer_id, operator_since) = 0)
);
comment on column farebox.accounts.ledger is
  'Leads the keys of every table on the charge path, so that these can be spread over databases by it.';
comment on column farebox.accounts.developer_number is
  'The developer in four bytes: every charge names it, and so does an index of charges.';
comment on column farebox.accounts.consent_ceiling_micros is
  'The most that direct top-ups may take from the saved card in a UTC month. Null: the owner has not consented.';
comment on column farebox.accounts.return_url is
  'The page to which people return after they topped up through the link of the developer''s refusal. A link may name '
  'another page of the same origin.';
comment on column farebox.accounts.operator_since is
  'Null: not an operator. An operator may use /v1/operator once two-factor authentication is on.';
comment on column farebox.accounts.live_account_id is
  'The account whose test keys this test account has. Null: a live account.';
comment on column farebox.accounts.keys_charge is
  'Whether consumer keys of the account can be charged. Spend keys always can.';
comment on column farebox.accounts.developer_day_micros is
  'What one developer can charge to consumer keys of the account in one UTC day. Null: no ceiling.';
comment on column farebox.accounts.processor_card_id is
  'The saved card that its owner chose. Null, or a card that is no longer saved: the newest one is charged.';
create unique index accounts_live_account on farebox.accounts (live_account_id) where live_account_id is not null;

create table farebox.consents (
  id uuid not null,
  account_id uuid not null references farebox.accounts (id),
  ceiling_micros bigint,
  given_by text not null,
  terms_version text,
  terms text,
  created_at timestamptz not null default now(),
  ledger smallint not null,
  constraint consents_pkey primary key (ledger, account_id, id),
  constraint consents_ceiling_positive check (ceiling_micros > 0),
  constraint consents_given_by_known check (given_by in ('owner', 'operator')),
  constraint consents_owner_agrees_to_terms
    check (given_by = 'operator' or ceiling_micros is null or (terms_version is not null and terms is not null))
);
-- Kept for as long as the books: a card network asks for the terms that a cardholder accepted.
comment on table farebox.consents is
  'Every change of accounts.consent_ceiling_micros, never edited. A null ceiling withdraws the consent.';
comment on column farebox.consents.given_by is
  'owner: in the console, who agreed to these terms. operator: with the farebox command, on the owner''s behalf.';

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
  name text,
  idempotency_hash bytea,
  request_hash bytea,
  constraint api_keys_hash_unique unique (hash),
  constraint api_keys_hash_is_sha256 check (octet_length(hash) = 32),
  constraint api_keys_kind_known check (kind in ('consumer', 'developer', 'legacy')),
  constraint api_keys_name_short check (length(name) <= 100)
) with (fillfactor = 90);
comment on table farebox.api_keys is 'Keys are stored as SHA-256 only.';
comment on column farebox.api_keys.changed_at is
  'Null until something about the key changes. Processes read recent changes several times a second, so a '
  'revoked key stops working everywhere within a second without a look-up on every charge.';
comment on column farebox.api_keys.name is 'The name that its owner gave it, to tell keys apart.';
comment on column farebox.api_keys.idempotency_hash is
  'Of the account and its idempotency key. The key is derived from the idempotency key, so that a retry can show it again.';
create index api_keys_account on farebox.api_keys (account_id);
create index api_keys_changed on farebox.api_keys (changed_at) where changed_at is not null;
create unique index api_keys_idempotency on farebox.api_keys (idempotency_hash) where idempotency_hash is not null;

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

create table farebox.operator_actions (
  id uuid primary key,
  operator_account_id uuid not null references farebox.accounts (id),
  account_id uuid not null references farebox.accounts (id),
  kind text not null,
  amount_micros bigint not null,
  top_up_id uuid,
  reason text not null,
  idempotency_key text not null,
  created_at timestamptz not null default now(),
  constraint operator_actions_kind_known check (kind in ('adjustment', 'refund')),
  constraint operator_actions_refund_names_top_up check ((kind = 'refund') = (top_up_id is not null)),
  constraint operator_actions_once unique (operator_account_id, idempotency_key)
);
comment on table farebox.operator_actions is
  'Who changed whose balance in the console, and why. Written in the transaction of the change.';
-- No foreign key: this row is global, and a top-up belongs to a ledger.
comment on column farebox.operator_actions.top_up_id is 'The refunded top-up, which `farebox doctor` looks up.';
create index operator_actions_account on farebox.operator_actions (account_id, id);
