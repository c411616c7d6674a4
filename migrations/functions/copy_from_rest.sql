-- Copies a new or changed row of a default partition to the table that its month is being moved to, while
-- src/store/charges/move-rest.ts moves months. At any other time it does nothing.
create or replace function farebox.copy_from_rest() returns trigger language plpgsql as $$
declare
  v_table text := tg_argv[0]
    || coalesce(to_char(uuid_extract_timestamp(new.id) at time zone 'UTC', '_YYYY_MM'), '_rest');
begin
  if to_regclass('farebox_moving.' || tg_argv[0] || '_rest') is null then return null; end if;
  -- No table is prepared for this month: the row stays in the default partition.
  if to_regclass('farebox_moving.' || v_table) is null then v_table := tg_argv[0] || '_rest'; end if;
  execute format(
    'insert into farebox_moving.%I select ($1).* on conflict on constraint %I do update set %s',
    v_table, v_table || '_pkey',
    (select string_agg(format('%1$I = excluded.%1$I', attname), ', ') from pg_attribute
      where attrelid = tg_relid and attnum > 0 and not attisdropped)
  ) using new;
  return null;
end $$;

create or replace trigger charges_rest_copied after insert on farebox.charges_rest
  for each row execute function farebox.copy_from_rest('charges');
create or replace trigger holds_rest_copied after insert or update on farebox.holds_rest
  for each row execute function farebox.copy_from_rest('holds');
