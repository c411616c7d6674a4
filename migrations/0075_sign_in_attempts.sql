-- Attempts to sign in are counted in a table of their own. In console.rate_limits, the library that keeps that table deleted
-- them after a minute, with its own rows, so an address had ten attempts a minute instead of ten in fifteen.
-- Locks: none on existing tables. The previous release may run beside it, and counts where it did.

create table console.sign_in_attempts (
  email_hash bytea not null,
  count integer not null,
  began_at timestamptz not null default now(),
  constraint sign_in_attempts_pkey primary key (email_hash)
);
comment on table console.sign_in_attempts is
  'How often somebody tried to sign in with an address since began_at. Deleted when the time is over.';
create index sign_in_attempts_began on console.sign_in_attempts (began_at);
