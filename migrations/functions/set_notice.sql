-- Keeps consumers.notice_below_micros, the highest threshold that is armed, at each change of a threshold.
create or replace function farebox.set_notice() returns trigger language plpgsql
-- Probes of primary keys, for the reasons in post_charges_2.sql.
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  v_changed farebox.thresholds := case tg_op when 'DELETE' then old else new end;
begin
  update farebox.consumers set notice_below_micros = (
    select max(t.below_micros) from farebox.thresholds t
    where t.ledger = v_changed.ledger and t.consumer_id = v_changed.consumer_id and t.crossed_at is null
  )
  where ledger = v_changed.ledger and id = v_changed.consumer_id;
  return null;
end $$;

create or replace trigger thresholds_set_notice after insert or update or delete on farebox.thresholds
  for each row execute function farebox.set_notice();
