/** Faults in the sums of developers' earnings. */

const HOURS = 'the hourly earnings and their tail equal the charges';
const DAYS = 'the daily and total earnings equal the hourly ones';
const PAID_BY = 'the top-up attribution and its tail equal what charges took from lots';
const ONE_ROW = 'each sum of earnings is a single row';
const BEGINS = 'each sum of earnings begins with its hour or day';

interface Fault {
  readonly what: string;
  readonly statements: readonly string[];
  /** Each check that fails, and the subject that it names. */
  readonly finds: readonly (readonly [check: string, subject: 'developer' | 'topUp'])[];
}

/** One hour has one charge of $1.00, and so does the next; they may be on the same day or on two. */
export const EARNINGS_FAULTS: readonly Fault[] = [
  { what: 'nothing', statements: [], finds: [] },
  ...[
    ['amount_micros = amount_micros + 1', 'an amount of an hour that was changed'],
    ['charges = charges + 1', 'a count of an hour that was changed'],
  ].map(([assignment = '', what = '']) => ({
    what,
    statements: [
      `update farebox.earnings set ${assignment} where span = 'hour'
        and begins_at = (select max(begins_at) from farebox.earnings where span = 'hour')`,
    ],
    finds: [
      [HOURS, 'developer'],
      [DAYS, 'developer'],
      [DAYS, 'developer'],
    ] as const,
  })),
  {
    what: 'a minute whose mark was lost',
    statements: [
      `update farebox.earnings set charged_minutes = 0 where span = 'hour'
        and begins_at = (select max(begins_at) from farebox.earnings where span = 'hour')`,
    ],
    finds: [[HOURS, 'developer']],
  },
  {
    what: 'a minute that is marked without a reason',
    statements: [
      `update farebox.earnings set charged_minutes = ~(-1::int8 << 60) where span = 'hour'
        and begins_at = (select max(begins_at) from farebox.earnings where span = 'hour')`,
    ],
    finds: [[HOURS, 'developer']],
  },
  {
    what: 'an hour that was moved within itself',
    statements: [
      `update farebox.earnings set begins_at = begins_at + interval '1 minute' where span = 'hour'
        and begins_at = (select max(begins_at) from farebox.earnings where span = 'hour')`,
    ],
    finds: [[BEGINS, 'developer']],
  },
  {
    what: 'a changed sum of all time',
    statements: [
      `update farebox.earnings set amount_micros = amount_micros + 1 where span = 'all'`,
    ],
    finds: [[DAYS, 'developer']],
  },
  {
    what: 'a lost sum of all time',
    statements: [`delete from farebox.earnings where span = 'all'`],
    finds: [[DAYS, 'developer']],
  },
  {
    what: 'minute marks on a sum without any',
    statements: [`update farebox.earnings set charged_minutes = 1 where span = 'all'`],
    finds: [[BEGINS, 'developer']],
  },
  {
    what: 'a sum that exists twice, in two halves',
    statements: [
      `alter table farebox.earnings drop constraint earnings_pkey`,
      `update farebox.earnings set amount_micros = amount_micros / 2, charges = 1 where span = 'all'`,
      `insert into farebox.earnings select * from farebox.earnings where span = 'all'`,
    ],
    finds: [[ONE_ROW, 'developer']],
  },
  {
    what: 'an invented row of the tail',
    statements: [
      `insert into farebox.earnings_tail (ledger, developer, minute, tool, amount_micros, charges)
        select 0, 1, date_trunc('hour', now()), 'fetch', 1, 0`,
    ],
    finds: [[HOURS, 'developer']],
  },
  {
    what: 'a changed sum of a top-up’s payments',
    statements: [`update farebox.top_up_earnings set charged_micros = charged_micros + 1`],
    finds: [[PAID_BY, 'topUp']],
  },
  {
    what: 'a lost sum of a top-up’s payments',
    statements: [`delete from farebox.top_up_earnings`],
    finds: [[PAID_BY, 'topUp']],
  },
  {
    what: 'a flush of the tail that was written again',
    statements: [
      `insert into farebox.attribution_tail
          (ledgers, consumers, spent_before, charge_group, through, developers, amounts)
        select array[ledger], array[id], array[0], array[1], array[1], array[1], array[1]
        from farebox.consumers`,
    ],
    finds: [[PAID_BY, 'topUp']],
  },
  {
    what: 'the last charge that was lost, together with its part of the counter',
    statements: [
      `delete from farebox.charges where spent_micros = 2000000`,
      `update farebox.consumers set spent_micros = 1000000`,
    ],
    finds: [
      [HOURS, 'developer'],
      [PAID_BY, 'topUp'],
    ],
  },
];
