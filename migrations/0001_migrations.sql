-- Records what `farebox migrate` has applied (src/store/migrations.ts). Farebox has its own schema, so that it can
-- share a database with other programs.
create schema if not exists farebox;

create table farebox.migrations (
  name text primary key,
  hash text not null,
  applied_at timestamptz not null default now()
);
comment on table farebox.migrations is 'The numbered files of migrations/ that were applied.';
comment on column farebox.migrations.hash is 'SHA-256 of the file without comments and white space, in hex.';

create table farebox.functions (
  id bigint generated always as identity primary key,
  name text not null,
  hash text not null,
  applied_at timestamptz not null default now(),
  constraint functions_applied_once unique (name, hash)
);
comment on table farebox.functions is
  'Every version of a file of migrations/functions that was applied. The last of a name is in force; an earlier '
  'release finds its own version here and knows that it was replaced.';
comment on column farebox.functions.hash is 'SHA-256 of the file, in hex.';
