-- An event when a key of an account, or a spend key, is created, gets an earlier end because it was rolled, or is revoked.
-- The spend keys of single developers under a ceiling make no event: nobody holds them.
create or replace function farebox.post_key_event() returns trigger language plpgsql as $$
declare
  v_what text := case
    when tg_op = 'INSERT' then 'key.created'
    when old.revoked_at is distinct from new.revoked_at then 'key.revoked'
    else 'key.rolled' end;
  v_spent_from uuid;
  -- A key of an account is a global row.
  v_ledger smallint := -1;
begin
  if tg_table_name = 'spend_keys' then
    select id into v_spent_from from farebox.budget_details
    where ledger = new.ledger and consumer_id = new.consumer_id and number = new.budget;
    v_ledger := new.ledger;
  end if;
  perform farebox.post_event_of_ledger(v_ledger, new.account_id, v_what, json_build_object(
    'id', farebox.wire_id('key', new.id),
    'kind', case tg_table_name when 'spend_keys' then 'consumer' else to_jsonb(new) ->> 'kind' end,
    'mode', (select case when ledger >= 2048 then 'test' else 'live' end from farebox.accounts where id = new.account_id),
    'budgetId', farebox.wire_id('bdg', v_spent_from),
    'name', new.name,
    'lastFour', new.last_four,
    'createdAt', farebox.wire_time(new.created_at),
    'expiresAt', farebox.wire_time(new.expires_at),
    'revokedAt', farebox.wire_time(new.revoked_at),
    'lastUsedAt', farebox.wire_time(new.last_used_at)
  ));
  return null;
end $$;

create or replace trigger api_keys_event_insert after insert on farebox.api_keys
  for each row execute function farebox.post_key_event();
create or replace trigger api_keys_event_update after update of expires_at, revoked_at on farebox.api_keys
  for each row when ((old.expires_at, old.revoked_at) is distinct from (new.expires_at, new.revoked_at))
  execute function farebox.post_key_event();
create or replace trigger spend_keys_event_insert after insert on farebox.spend_keys
  for each row when (new.developer is null) execute function farebox.post_key_event();
create or replace trigger spend_keys_event_update after update of expires_at, revoked_at on farebox.spend_keys
  for each row when (new.developer is null
    and (old.expires_at, old.revoked_at) is distinct from (new.expires_at, new.revoked_at))
  execute function farebox.post_key_event();
