-- The console's tables: people, their credentials and their sessions. better-auth (src/console) determines their
-- columns. They have their own schema, so that the ledger does not depend on them. Every address here was verified, by
-- mail or by the operator, before it could have a password.
create schema console;

create table console.users (
  id uuid primary key default gen_random_uuid(),
  email text not null constraint users_email_unique unique,
  name text not null,
  email_verified boolean not null,
  image text,
  two_factor_enabled boolean default false,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  account_id uuid constraint users_account_unique unique references farebox.accounts (id)
);
comment on column console.users.account_id is 'The account that this person owns; given when the address is proven.';

create table console.sessions (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null references console.users (id) on delete cascade,
  token text not null constraint sessions_token_unique unique,
  expires_at timestamptz not null,
  ip_address text,
  user_agent text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null
);
create index sessions_user on console.sessions (user_id);

create table console.credentials (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null references console.users (id) on delete cascade,
  account_id text not null,
  provider_id text not null,
  password text,
  access_token text,
  refresh_token text,
  id_token text,
  access_token_expires_at timestamptz,
  refresh_token_expires_at timestamptz,
  scope text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null
);
comment on column console.credentials.password is 'scrypt; a session cookie and this are all that signs anybody in.';
create index credentials_user on console.credentials (user_id);

create table console.verifications (
  id uuid primary key default gen_random_uuid(),
  identifier text not null,
  value text not null,
  expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index verifications_identifier on console.verifications (identifier);

create table console.two_factors (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null references console.users (id) on delete cascade,
  secret text not null,
  backup_codes text not null,
  verified boolean,
  failed_verification_count integer,
  locked_until timestamptz
);
create index two_factors_user on console.two_factors (user_id);

create table console.rate_limits (
  id uuid primary key default gen_random_uuid(),
  key text not null constraint rate_limits_key_unique unique,
  count integer not null,
  last_request bigint not null
);

-- Mails kept when no mail server is configured, shown at /dev/mail.
create table console.mails (
  id bigint generated always as identity primary key,
  recipient text not null,
  subject text not null,
  body text not null,
  created_at timestamptz not null default now()
);

-- Links with which an operator lets a person sign in once. Only the link contains the token itself.
create table console.sign_in_links (
  token_hash bytea primary key,
  email text not null,
  expires_at timestamptz not null
);

-- The name that its owner gave a key, to tell keys apart.
alter table farebox.api_keys
  add column name text constraint api_keys_name_short check (length(name) <= 100);
