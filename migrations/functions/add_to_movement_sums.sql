-- Adds each change of movements to the sums of their months, in the same transaction.
-- Locks: the rows of the sums, in the order of their key. The consumer's row is locked by then, so nobody waits here. The
-- service only inserts movements. The triggers for updates and deletes are for repairs by hand.
create or replace function farebox.add_to_movement_sums() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    insert into farebox.movement_sums as s (ledger, consumer_id, month, kind, movements, amount_micros)
    select ledger, consumer_id, date_trunc('month', created_at at time zone 'UTC')::date, kind, -count(*), -sum(amount_micros)
    from removed group by 1, 2, 3, 4 order by 1, 2, 3, 4
    on conflict on constraint movement_sums_pkey do update
      set movements = s.movements + excluded.movements, amount_micros = s.amount_micros + excluded.amount_micros;
  end if;
  if tg_op <> 'DELETE' then
    insert into farebox.movement_sums as s (ledger, consumer_id, month, kind, movements, amount_micros)
    select ledger, consumer_id, date_trunc('month', created_at at time zone 'UTC')::date, kind, count(*), sum(amount_micros)
    from added group by 1, 2, 3, 4 order by 1, 2, 3, 4
    on conflict on constraint movement_sums_pkey do update
      set movements = s.movements + excluded.movements, amount_micros = s.amount_micros + excluded.amount_micros;
  end if;
  return null;
end $$;

create or replace trigger movements_added after insert on farebox.movements
  referencing new table as added
  for each statement execute function farebox.add_to_movement_sums();
create or replace trigger movements_changed after update on farebox.movements
  referencing old table as removed new table as added
  for each statement execute function farebox.add_to_movement_sums();
create or replace trigger movements_removed after delete on farebox.movements
  referencing old table as removed
  for each statement execute function farebox.add_to_movement_sums();
