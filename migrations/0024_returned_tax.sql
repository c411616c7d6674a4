-- A movement keeps the tax that its refund or dispute returned. When a refund fails, the shares of the others are calculated
-- again, so tax that is read from the refund would change the statements of past months. functions/set_returned_tax.sql fills the
-- column, also for movements of the previous release. Tax that was calculated again before this file stays as statements showed it.
-- Locks: farebox.movements, access exclusive, while the movements of taxed refunds and disputes are filled: seconds for 100,000.
alter table farebox.movements add column tax_micros bigint not null default 0;
comment on column farebox.movements.tax_micros is
  'Refunds and disputes: the tax that went back to the payer with this movement, with the sign of the amount. It is beside the '
  'amount. The tax that a top-up paid is top_ups.tax_micros.';

-- The first of several movements has the tax, and again the first one after a return.
update farebox.movements m
set tax_micros = case when m.amount_micros < 0 then -first.tax_micros else first.tax_micros end
from (
  select t.ledger, t.consumer_id, t.id, r.gross_micros - r.amount_micros as tax_micros,
    lag(t.kind) over (partition by t.ledger, t.consumer_id, t.reversal_id order by t.id) is distinct from t.kind as is_first
  from farebox.reversals r
  join farebox.movements t on (t.ledger, t.consumer_id, t.reversal_id) = (r.ledger, r.consumer_id, r.id)
  where r.gross_micros > r.amount_micros
) first
where first.is_first and (m.ledger, m.consumer_id, m.id) = (first.ledger, first.consumer_id, first.id);
