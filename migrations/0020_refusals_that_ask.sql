-- Says on the columns which refused charges ask for an automatic top-up: only those that its amount would cover.
-- Locks: farebox.consumers and farebox.outbox, share update exclusive, for a moment.
comment on column farebox.consumers.auto_top_up_below_micros is
  'A charge that leaves less, or does not fit and would with an automatic top-up, asks for one and sets this to null, so '
  'that it asks once. Null: switched off, or asked for.';
comment on column farebox.outbox.is_refused is
  'auto_top_up: whether it was written for a refused charge that the amount would cover, until it is postponed. Null: '
  'another topic.';
