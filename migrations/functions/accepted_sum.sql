-- The sum of a consumer's charges accepted so far, in order of arrival. A charge that does not fit is skipped, and a
-- later, smaller one may still fit: for 3, 5 and 2 with 6 available, the sums are 3, 3 and 5.
create or replace function farebox.accept_if_fits(accepted bigint, amount bigint, available bigint)
returns bigint language sql immutable parallel safe
as $$ select case when amount <= available - accepted then accepted + amount else accepted end $$;

create or replace aggregate farebox.accepted_sum(amount bigint, available bigint) (
  sfunc = farebox.accept_if_fits, stype = bigint, initcond = '0'
);
