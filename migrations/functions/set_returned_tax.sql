-- Sets the tax of a movement of a refund or dispute. A movement that takes money returns the tax that the movements before it have
-- not returned yet. So the first has all of it: a claim that waits for credits has several. A movement that credits the money again
-- takes back what was returned, even if the share of the refund was calculated again meanwhile.
create or replace function farebox.set_returned_tax() returns trigger language plpgsql as $$
begin
  -- Without its reversal, which a foreign key refuses, a movement has no tax.
  new.tax_micros := coalesce((
    select case when new.amount_micros < 0 then r.amount_micros - coalesce(r.gross_micros, r.amount_micros) else 0 end
      - coalesce(sum(m.tax_micros), 0)
    from farebox.reversals r
    left join farebox.movements m on (m.ledger, m.consumer_id, m.reversal_id) = (r.ledger, r.consumer_id, r.id)
    where (r.ledger, r.consumer_id, r.id) = (new.ledger, new.consumer_id, new.reversal_id)
    group by r.amount_micros, r.gross_micros
  ), 0);
  return new;
end $$;

create or replace trigger movements_set_returned_tax before insert on farebox.movements
  for each row when (new.reversal_id is not null) execute function farebox.set_returned_tax();
