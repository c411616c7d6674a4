-- An automatic top-up that could not be paid at once ends without a payment if the balance is no longer low when it could be. One that
-- a refused charge asked for is needed at any balance, until something is credited.
-- Locks: farebox.top_ups, access exclusive, for a change of the catalog: no row is read or rewritten.
alter table farebox.top_ups add column asked_by_refusal boolean;
comment on column farebox.top_ups.asked_by_refusal is
  'Automatic top-ups: whether a refused charge or hold asked for this one, at any balance. Null: not known, from before this column.';
