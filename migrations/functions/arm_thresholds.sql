-- Arms the thresholds that a credit brings a balance to again. It runs when the transaction of the credit commits, which has
-- locked the consumer and repaid its debts.
-- Released holds and won disputes arm nothing: near a threshold, each hold would make an event. A refund of a charge arms
-- a threshold that was crossed more than an hour ago, so charges and refunds in turns make one event an hour at most.
create or replace function farebox.arm_thresholds() returns trigger language plpgsql
-- Probes of primary keys, for the reasons in post_charges_2.sql.
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  update farebox.thresholds t set crossed_at = null
  from farebox.consumers c
  where t.ledger = new.ledger and t.consumer_id = new.consumer_id and t.crossed_at is not null
    and c.ledger = new.ledger and c.id = new.consumer_id
    and c.credited_micros - c.spent_micros - c.held_micros >= t.below_micros
    and (new.kind <> 'charge_refund' or t.crossed_at < now() - interval '1 hour');
  return null;
end $$;

-- Dropped first: a constraint trigger cannot be replaced.
drop trigger if exists movements_arm_thresholds on farebox.movements;
create constraint trigger movements_arm_thresholds after insert on farebox.movements
  deferrable initially deferred for each row when (new.amount_micros > 0)
  execute function farebox.arm_thresholds();
