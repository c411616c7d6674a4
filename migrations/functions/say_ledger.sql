-- Rows of the previous release, which does not say their ledger. To be dropped with the next one.
create or replace function farebox.say_ledger() returns trigger language plpgsql as $$
begin
  if tg_table_name = 'consents' then
    new.ledger := (select ledger from farebox.accounts where id = new.account_id);
  elsif tg_table_name = 'hold_expiries' then
    new.ledger := (select ledger from farebox.holds where developer = new.developers[1] and id = new.holds[1]);
  elsif tg_table_name = 'hold_extensions' then
    -- Other holds are extended by a function, which says it.
    new.ledger := (select ledger from farebox.leases where id = new.hold_id);
  else
    new.ledger := (select ledger from farebox.top_ups where id = new.top_up_id);
  end if;
  return new;
end $$;

create or replace trigger consents_say_ledger before insert on farebox.consents
  for each row when (new.ledger is null) execute function farebox.say_ledger();
create or replace trigger hold_expiries_say_ledger before insert on farebox.hold_expiries
  for each row when (new.ledger is null) execute function farebox.say_ledger();
create or replace trigger hold_extensions_say_ledger before insert on farebox.hold_extensions
  for each row when (new.ledger is null) execute function farebox.say_ledger();
create or replace trigger top_up_earnings_say_ledger before insert on farebox.top_up_earnings
  for each row when (new.ledger is null) execute function farebox.say_ledger();
create or replace trigger archived_attribution_say_ledger before insert on farebox.archived_attribution
  for each row when (new.ledger is null) execute function farebox.say_ledger();
