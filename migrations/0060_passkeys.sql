-- Passkeys, with which people sign in to the console instead of a password and a code. better-auth's plugin (src/console)
-- determines the columns. Adding and removing one changes access, so both are in the audit log.
-- Locks: only the new table, which references console.users (SHARE ROW EXCLUSIVE there, for the catalogue alone).

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

create constraint trigger passkeys_audit_insert after insert on console.passkeys
  deferrable initially deferred for each row
  execute function farebox.audit_change('passkey.added', 'user_id', 'name');
create constraint trigger passkeys_audit_delete after delete on console.passkeys
  deferrable initially deferred for each row
  execute function farebox.audit_change('passkey.removed', 'user_id', 'name');
