-- Appends a changed row to the audit log, when its transaction commits. Arguments: the action, the column that leads to the
-- account, and the columns that go into the details. Who makes the change, if the transaction says so, is added as `by`
-- (src/store/audit/actor.ts).
-- A new ceiling for each developer and day changes a budget for each of them, up to 100,000 at once. It is in the entry
-- account_keys.changed, so budgets that follow it have none: the log would be locked for all others meanwhile. The transaction
-- says so (src/store/accounts/account-keys.ts), so each pays next to nothing here.
-- Long lists are not repeated whole in each entry (functions/audit_list.sql).
create or replace function farebox.audit_change() returns trigger language plpgsql as $$
declare
  v_after jsonb;
  v_before jsonb;
  v_shown text[] := coalesce(tg_argv[2:], '{}');
  v_changed text[];
  v_owner text;
  v_acting text := nullif(current_setting('farebox.changed_by', true), '');
  v_previous bytea;
  v_entry farebox.audit_entries;
begin
  if tg_table_name = 'budgets' and current_setting('farebox.new_ceiling', true) = 'true' then
    return null;
  end if;
  v_after := to_jsonb(case tg_op when 'DELETE' then old else new end);
  v_before := case tg_op when 'UPDATE' then to_jsonb(old) else v_after end;
  v_changed := array(select name from unnest(v_shown) name where v_after -> name <> v_before -> name);
  v_owner := v_after ->> tg_argv[1];
  if tg_table_name = 'budgets' then
    -- A budget has two rows. Its id is in the other one.
    v_after := v_after || (select jsonb_build_object('id', d.id) from farebox.budget_details d
      where (d.ledger, d.consumer_id, d.number) = (new.ledger, new.consumer_id, new.number));
  elsif tg_table_name = 'budget_details' and tg_op = 'INSERT' then
    v_after := v_after || (select jsonb_build_object('limit_micros', b.limit_micros,
        'window_limit_micros', b.window_limit_micros, 'window_unit', b.window_unit,
        'parent_id', (select id from farebox.budget_details p
          where (p.ledger, p.consumer_id, p.number) = (b.ledger, b.consumer_id, new.path[cardinality(new.path) - 1])))
      from farebox.budgets b where (b.ledger, b.consumer_id, b.number) = (new.ledger, new.consumer_id, new.number));
  end if;
  v_entry.happened_at := now();
  v_entry.action := tg_argv[0];
  v_entry.account_id := case tg_argv[1]
    when 'consumer_id' then (select id from farebox.accounts where consumer_id = v_owner::uuid)
    when 'user_id' then coalesce((select account_id from console.users where id = v_owner::uuid),
      -- Deleted in this transaction (remember_account_of_person.sql).
      nullif(current_setting('farebox.account_of_' || replace(v_owner, '-', ''), true), '')::uuid)
    when 'email' then (select id from farebox.accounts where email = v_owner)
    else v_owner::uuid
  end;
  v_entry.subject_id := v_after ->> 'id';
  v_entry.details := (
    select coalesce(jsonb_object_agg(name, case jsonb_typeof(v_after -> name)
        when 'array' then farebox.audit_list(v_after -> name, case tg_op when 'UPDATE' then v_before -> name end, 'added')
        else v_after -> name end), '{}')
      from unnest(v_shown) name);
  if cardinality(v_changed) > 0 then
    v_entry.details := v_entry.details || jsonb_build_object('before',
      (select jsonb_object_agg(name, case jsonb_typeof(v_before -> name)
          when 'array' then farebox.audit_list(v_before -> name, v_after -> name, 'removed')
          else v_before -> name end)
        from unnest(v_changed) name));
  end if;
  if v_acting is not null then v_entry.details := v_entry.details || jsonb_build_object('by', v_acting::jsonb); end if;
  v_entry.program := current_setting('application_name');
  v_entry.database_role := session_user;

  -- Until the commit, which follows: the next entry continues from this one. Nothing is locked after it.
  perform pg_advisory_xact_lock(hashtext('farebox.audit_entries'));
  -- Its snapshot is newer than the lock.
  select number, hash into v_entry.number, v_previous
    from farebox.audit_entries order by number desc limit 1;
  v_entry.number := coalesce(v_entry.number, 0) + 1;
  v_entry.hash := farebox.audit_hash(coalesce(v_previous, ''), v_entry);
  insert into farebox.audit_entries select v_entry.*;
  return null;
end $$;
