-- Bounds that no sequence of requests may exceed. Amounts are exact in JavaScript up to 2^53 - 1. Without bounds, a
-- charge beyond that would commit but could not be answered, and neither could the others in its flush. With them, the
-- step that would exceed a bound is refused. A balance is credited - spent - held and never negative, so the bound on
-- credited bounds all of them. Each statement below reads its table once, under a lock for which charges wait.

alter table farebox.consumers
  add constraint consumers_credited_is_exact check (credited_micros <= 9007199254740991);

alter table farebox.charges
  add constraint charges_counters_plausible
    check (balance_micros >= 0 and spent_micros between amount_micros and 9007199254740991);
