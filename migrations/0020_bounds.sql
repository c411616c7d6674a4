-- Bounds that no sequence of requests may pass. Amounts are exact in JavaScript up to 2^53 - 1: beyond that a charge
-- committed and could not be answered, nor could its neighbours in the flush. With a bound the step that passes it
-- is refused. A balance is credited - spent - held and never negative, so the bound on credited bounds all of them.
-- Each statement reads its table once under a lock that charges wait for.

alter table farebox.consumers
  add constraint consumers_credited_is_exact check (credited_micros <= 9007199254740991);

alter table farebox.charges
  add constraint charges_counters_plausible
    check (balance_micros >= 0 and spent_micros between amount_micros and 9007199254740991);
