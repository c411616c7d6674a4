-- The sum of the charges that were accepted so far, of one consumer's in order of arrival. A charge that does
-- not fit is left out, and a later smaller one may still fit: of 3, 5 and 2 with 6 available, the sums are
-- 3, 3 and 5.
create or replace function farebox.accept_if_fits(accepted bigint, amount bigint, available bigint)
returns bigint language sql immutable parallel safe
as $$ select case when amount <= available - accepted then accepted + amount else accepted end $$;

create or replace aggregate farebox.accepted_sum(amount bigint, available bigint) (
  sfunc = farebox.accept_if_fits, stype = bigint, initcond = '0'
);
