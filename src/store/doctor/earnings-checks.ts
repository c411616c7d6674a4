/** The checks that compare the sums of earnings with the charges. */
import { ARCHIVED_BEFORE } from '../charges/archived.ts';
import { sql } from '../database.ts';
import { EARNED, MINUTE_MARK, SPANS } from '../earnings/earnings.ts';
import { cutByLots, PAID_BY_TOP_UPS } from '../earnings/top-up-attribution.ts';

/** A number without an account is a finding too. */
const DEVELOPER = sql.fragment`'developer ' || coalesce(a.developer_id::text, d.developer::text)`;

export const EARNINGS_CHECKS = {
  'the hourly earnings and their tail equal the charges': sql.fragment`
    select ${DEVELOPER}, tool || ' in the hour from ' || hour::text || ': '
      || micros || ' micros and ' || charges || ' charges too few'
      || case when made <> marked then ', and the marks of its minutes are wrong' else '' end
    from (
      select developer, tool, date_trunc('hour', minute, 'UTC') as hour, sum(amount_micros) as micros,
        sum(charges) as charges, bit_or(made) as made, bit_or(marked) as marked
      from (
        select *, ${MINUTE_MARK} as made, 0::int8 as marked from (${EARNED}) c
        union all
        select developer, tool, minute, -amount_micros, -charges, 0, ${MINUTE_MARK}
        from farebox.earnings_tail where minute >= ${ARCHIVED_BEFORE}
        union all
        select developer, tool, begins_at, -amount_micros, -charges, 0, charged_minutes
        from farebox.earnings where span = 'hour' and begins_at >= ${ARCHIVED_BEFORE}
      ) e group by 1, 2, 3
    ) d left join farebox.accounts a on a.developer_number = d.developer
    where micros <> 0 or charges <> 0 or made <> marked`,

  // Their hours cannot be computed again.
  'the earnings of archived months equal their charges': sql.fragment`
    select ${DEVELOPER}, tool || ' in the month from ' || month::text || ': ' || micros || ' micros and '
      || charges || ' charges too few' || case when marks > 0 then ', and minutes are marked' else '' end
    from (
      select developer, tool, month, sum(micros) as micros, sum(charges) as charges, sum(marks) as marks
      from (
        select developer, tool, month, amount_micros as micros, charges, 0 as marks
        from farebox.archived_charges
        union all
        select developer, tool, date_trunc('month', uuid_extract_timestamp(id) at time zone 'UTC')::date,
          -amount_micros, 0, 0
        from farebox.charge_refunds where uuid_extract_timestamp(id) < ${ARCHIVED_BEFORE}
        union all
        select developer, tool, date_trunc('month', minute at time zone 'UTC')::date, -amount_micros, -charges, 0
        from farebox.earnings_tail where minute < ${ARCHIVED_BEFORE}
        union all
        select developer, tool, date_trunc('month', begins_at at time zone 'UTC')::date, -amount_micros,
          -charges, (charged_minutes <> 0)::int
        from farebox.earnings where span = 'hour' and begins_at < ${ARCHIVED_BEFORE}
      ) e group by 1, 2, 3
    ) d left join farebox.accounts a on a.developer_number = d.developer
    where micros <> 0 or charges <> 0 or marks > 0`,

  'the daily and total earnings equal the hourly ones': sql.fragment`
    select ${DEVELOPER}, tool || ', ' || span || ' from ' || begins_at::text
      || ': ' || micros || ' micros and ' || charges || ' charges too few'
    from (
      select developer, span, tool, begins_at, sum(micros) as micros, sum(charges) as charges
      from (
        select developer, tool, s.span, s.begins_at, amount_micros as micros, charges
        from (select *, begins_at as minute from farebox.earnings where span = 'hour') h
          cross join lateral ${SPANS} where s.span <> 'hour'
        union all
        select developer, tool, span, begins_at, -amount_micros, -charges
        from farebox.earnings where span <> 'hour'
      ) e group by 1, 2, 3, 4
    ) d left join farebox.accounts a on a.developer_number = d.developer
    where micros <> 0 or charges <> 0`,

  'the top-up attribution and its tail equal what charges took from lots': sql.fragment`
    select 'top-up ' || top_up_id, 'for ' || ${DEVELOPER} || ': '
      || micros || ' micros and ' || charges || ' charges too few'
    from (
      select ledger, developer, top_up_id, sum(micros) as micros, sum(charges) as charges
      from (
        ${PAID_BY_TOP_UPS}
        union all
        select ledger, developer, top_up_id, -micros, -charges
        from (${cutByLots(sql.fragment`farebox.attribution_tail`)}) w
        union all
        select ledger, developer, top_up_id, -charged_micros, -charges from farebox.top_up_earnings
      ) p group by 1, 2, 3
    ) d left join farebox.accounts a on a.developer_number = d.developer
    where micros <> 0 or charges <> 0`,

  // The index that prevents duplicate rows depends on the operating system's collation, and may be silently wrong.
  'each sum of earnings is a single row': sql.fragment`
    select ${DEVELOPER}, tool || ', ' || span || ' from ' || begins_at::text || ': ' || copies || ' rows'
    from (
      select developer, span, tool, begins_at, count(*) as copies
      from farebox.earnings group by 1, 2, 3, 4 having count(*) > 1
    ) d left join farebox.accounts a on a.developer_number = d.developer`,

  'each sum of earnings begins with its hour or day': sql.fragment`
    select ${DEVELOPER}, tool || ', ' || span || ' from ' || begins_at::text
    from farebox.earnings d left join farebox.accounts a on a.developer_number = d.developer
    where begins_at <> case span when 'all' then '-infinity' else date_trunc(span, begins_at, 'UTC') end
      or (span <> 'hour' and charged_minutes <> 0)`,
} as const;
