-- Appends a changed row to the audit log, when its transaction commits. Arguments: the action, the column that leads to the
-- account, and the columns that go into the details.
create or replace function farebox.audit_change() returns trigger language plpgsql as $$
declare
  after jsonb := to_jsonb(case tg_op when 'DELETE' then old else new end);
  before jsonb := case tg_op when 'UPDATE' then to_jsonb(old) else after end;
  shown text[] := coalesce(tg_argv[2:], '{}');
  changed text[] := array(select name from unnest(shown) name where after -> name <> before -> name);
  owner text := after ->> tg_argv[1];
  previous bytea;
  entry farebox.audit_entries;
begin
  entry.happened_at := now();
  entry.action := tg_argv[0];
  entry.account_id := case tg_argv[1]
    when 'consumer_id' then (select id from farebox.accounts where consumer_id = owner::uuid)
    when 'user_id' then (select account_id from console.users where id = owner::uuid)
    when 'email' then (select id from farebox.accounts where email = owner)
    else owner::uuid
  end;
  entry.subject_id := after ->> 'id';
  entry.details := (select coalesce(jsonb_object_agg(name, after -> name), '{}') from unnest(shown) name);
  if cardinality(changed) > 0 then
    entry.details := entry.details || jsonb_build_object('before',
      (select jsonb_object_agg(name, before -> name) from unnest(changed) name));
  end if;
  entry.program := current_setting('application_name');
  entry.database_role := session_user;

  -- Until the commit, which follows: the next entry continues from this one. Nothing is locked after it.
  perform pg_advisory_xact_lock(hashtext('farebox.audit_entries'));
  -- Its snapshot is newer than the lock.
  select number, hash into entry.number, previous
    from farebox.audit_entries order by number desc limit 1;
  entry.number := coalesce(entry.number, 0) + 1;
  entry.hash := farebox.audit_hash(coalesce(previous, ''), entry);
  insert into farebox.audit_entries select entry.*;
  return null;
end $$;
