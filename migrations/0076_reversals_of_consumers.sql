-- A reversal is of a top-up of its own consumer, and a movement is of a reversal of its own consumer: the foreign keys
-- say so now. They have the ledger too, as the keys of everything that belongs to a consumer should: an engine that spreads
-- ledgers over nodes checks a key of one ledger alone.
-- Locks: SHARE on top_ups and reversals while their indexes are built, then SHARE ROW EXCLUSIVE on both and on movements
-- while their rows are compared: top-ups and refunds wait, reads and charges do not. ACCESS EXCLUSIVE at the end, for the
-- catalog alone. The previous release may run beside it.
create unique index top_ups_of_consumer on farebox.top_ups (ledger, consumer_id, id);
create unique index reversals_of_consumer on farebox.reversals (ledger, consumer_id, id);
alter table farebox.reversals add constraint reversals_top_up_of_consumer_fkey
  foreign key (ledger, consumer_id, top_up_id) references farebox.top_ups (ledger, consumer_id, id);
alter table farebox.movements add constraint movements_reversal_of_consumer_fkey
  foreign key (ledger, consumer_id, reversal_id) references farebox.reversals (ledger, consumer_id, id);
alter table farebox.movements drop constraint movements_reversal_id_fkey;
alter table farebox.reversals drop constraint reversals_top_up_id_fkey;
