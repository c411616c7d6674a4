-- Refuses to change or delete what was written. The owner of the table could drop the trigger; `farebox doctor` finds that.
create or replace function farebox.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '%.% is append-only', tg_table_schema, tg_table_name using errcode = 'insufficient_privilege';
end $$;

create or replace trigger audit_entries_append_only before update or delete or truncate on farebox.audit_entries
  for each statement execute function farebox.refuse_change();

-- The terms that a cardholder accepted are nowhere else.
create or replace trigger consents_append_only before update or delete or truncate on farebox.consents
  for each statement execute function farebox.refuse_change();

-- Charges and receipts name a card by its version.
create or replace trigger rate_cards_append_only before update or delete or truncate on farebox.rate_cards
  for each statement execute function farebox.refuse_change();
