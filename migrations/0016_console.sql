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
  account_id uuid constraint users_account_unique unique references farebox.accounts (id),
  constraint users_own_no_test_account check (email not like 'test:%')
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
comment on column console.credentials.password is 'scrypt. Sessions, passkeys and sign-in links are in tables of their own.';
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
  locked_until timestamptz,
  -- One secret a person: of those that several tabs add, only one was shown last.
  constraint two_factors_user_unique unique (user_id)
);

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

-- With a passkey, people sign in without a password and a code.
create table console.passkeys (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null references console.users (id) on delete cascade,
  name text,
  credential_id text not null constraint passkeys_credential_unique unique,
  public_key text not null,
  counter integer not null,
  device_type text not null,
  backed_up boolean not null,
  transports text,
  aaguid text,
  created_at timestamptz not null default now()
);
comment on column console.passkeys.counter is
  'How often the device has signed, if it counts: a lower number than before means that it was copied.';
create index passkeys_user on console.passkeys (user_id);

-- Not in rate_limits: the library deletes its rows there after a minute.
create table console.sign_in_attempts (
  email_hash bytea not null,
  count integer not null,
  began_at timestamptz not null default now(),
  constraint sign_in_attempts_pkey primary key (email_hash)
);
comment on table console.sign_in_attempts is
  'How often somebody tried to sign in with an address since began_at. Deleted when the time is over.';
create index sign_in_attempts_began on console.sign_in_attempts (began_at);

-- A mail that is tried once could be prevented by whoever waits until the mail server is away.
create table console.owed_mails (
  user_id uuid not null,
  kind text not null,
  id uuid not null default gen_random_uuid(),
  owed_at timestamptz not null default now(),
  tried_at timestamptz not null default now(),
  constraint owed_mails_pkey primary key (user_id, kind),
  constraint owed_mails_user_id_fkey foreign key (user_id) references console.users (id) on delete cascade
);
comment on table console.owed_mails is
  'Mails about a change to how a person signs in that no mail server has accepted yet. Deleted then, or after three days.';
comment on column console.owed_mails.id is
  'Another one with each change: a mail about an earlier change does not settle it.';
comment on column console.owed_mails.tried_at is
  'When the last attempt to send it began.';
