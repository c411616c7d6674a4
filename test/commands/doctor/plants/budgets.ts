/** Faults of budgets and spend keys: what was counted, which limit was passed, and which path is broken. */
import type { Plant } from '../planted-books.ts';

const USED = 'a budget used what its keys charged, less refunds, and what their holds reserve';
const WINDOW = 'a window counted what its keys charged and held since it began';
const LIMIT = 'every budget is within the limits that applied';
const MARK = 'the next mark of a limit is a mark of that limit, above what is used';
const PATH = 'a budget has a path from its root, and is closed in both of its rows';
const BLOCKED = 'an account knows whether the budget of a developer is closed';
const KEY_PATH = 'a spend key has the path of its budget';
const BY_DAY = 'the daily spending of a key and its tail equal its charges';
const IN_ALL = 'the total spending of a key equals its daily spending';
const OF_KEY = 'the total spending of a key and its tail equal what it charged, less refunds';
const OF_BUDGET = 'the spending of a budget equals that of its keys';
const NAMED = 'what a spend key paid or reserved names a key of that consumer';

/**
 * A budget (`:adjustment`) with a child (`:checkout`), and the child's key (`:manual`), which made the last charge, of
 * $1.00, and reserves $2.00. The child has $5.00 for each month and $9.00 in all, and counted both.
 */
const TREE = [
  `insert into farebox.budgets (ledger, consumer_id, number, used_micros, limit_micros, window_unit,
      window_limit_micros, window_used_micros, window_began, window_from_micros)
    select ledger, id, v.number, 3000000, v.all_in, v.unit, v.each, v.counted, date_trunc('month', now(), 'UTC'), 1000000
    from farebox.consumers, (values (1, null::int8, 0, null::int8, 0), (2, 9000000, 4, 5000000, 3000000))
      as v (number, all_in, unit, each, counted) where id = ':consumer'`,
  `insert into farebox.budget_details (id, ledger, consumer_id, number, path, name)
    select v.id::uuid, ledger, consumers.id, v.number, v.path::int[], 'a test'
    from farebox.consumers, (values (':adjustment', 1, '{1}'), (':checkout', 2, '{1,2}')) as v (id, number, path)
    where consumers.id = ':consumer'`,
  `insert into farebox.spend_keys (id, hash, account_id, ledger, consumer_id, number, budget, path, last_four)
    select ':manual', sha256(':manual'), ':account', ledger, id, 1, 2, '{1,2}', 'test'
    from farebox.consumers where id = ':consumer'`,
  `update farebox.charges set origin = int4send(1) where id = ':lastCharge'`,
  `insert into farebox.holds (id, ledger, consumer_id, developer, tool, amount_micros, balance_micros, expires_at,
      held_micros, spend_key)
    select ':manualCredit', ledger, id, 1, 'search', 2000000, 7000000, '2100-01-01Z', 2000000, 1
    from farebox.consumers where id = ':consumer'`,
  `insert into farebox.key_spending
      (ledger, consumer_id, spend_key, span, begins_at, developer, tool, amount_micros, charges)
    select ledger, consumer_id, 1, s.span, s.begins_at, developer, tool, amount_micros, 1
    from farebox.charges cross join lateral (values ('all', '-infinity'::timestamptz),
      ('day', date_trunc('day', uuid_extract_timestamp(id), 'UTC'))) as s (span, begins_at)
    where id = ':lastCharge'`,
];
const plant = (what: string, statements: readonly string[], finds: Plant['finds']): Plant => ({
  what,
  statements: [...TREE, ...statements],
  finds,
});
const budgets = (set: string, where = 'number = 2') =>
  `update farebox.budgets set ${set} where consumer_id = ':consumer' and ${where}`;
const spending = (set: string, where = 'true') =>
  `update farebox.key_spending set ${set} where consumer_id = ':consumer' and ${where}`;
const refund = (micros: number) => `
  with earned as (
    insert into farebox.earnings_tail (ledger, developer, minute, tool, amount_micros, charges, consumer_id, spend_key)
    select ledger, developer, uuid_extract_timestamp(':checkoutCredit'), tool, -${micros}, 0, consumer_id, 1
    from farebox.charges where id = ':lastCharge'
  )
  insert into farebox.charge_refunds (id, ledger, consumer_id, charge_id, developer, tool, charge_micros, amount_micros,
    refunded_micros, spent_micros, spend_key)
  select ':checkoutCredit', ledger, consumer_id, id, developer, tool, amount_micros, ${micros}, ${micros}, spent_micros, 1
  from farebox.charges where id = ':lastCharge'`;

export const BUDGET_PLANTS: readonly Plant[] = [
  plant('nothing', [], () => []),
  plant(
    'what was counted twice in all',
    [budgets('used_micros = used_micros + 1')],
    ({ checkout }) => [[USED, `budget ${checkout}`]],
  ),
  plant(
    'what was counted below and not above',
    [budgets('used_micros = 1000000', 'number = 1')],
    ({ adjustment }) => [[USED, `budget ${adjustment}`]],
  ),
  plant(
    'a window that counted a micro-dollar too little',
    [budgets('window_used_micros = window_used_micros - 1')],
    ({ checkout }) => [[WINDOW, `budget ${checkout}`]],
  ),
  plant(
    'a window that began after the charge and counts it still',
    [budgets('window_from_micros = 2000000')],
    ({ checkout }) => [[WINDOW, `budget ${checkout}`]],
  ),
  plant(
    'a window that began after the hold and counts it still',
    [budgets(`window_began = now() + interval '1 hour'`)],
    ({ checkout }) => [[WINDOW, `budget ${checkout}`]],
  ),
  plant('a refund that gave nothing back', [refund(400_000)], ({ adjustment, checkout }) => [
    [USED, `budget ${adjustment}`],
    [USED, `budget ${checkout}`],
    [WINDOW, `budget ${checkout}`],
  ]),
  plant(
    'a refund that gave back what it should',
    [
      refund(400_000),
      budgets('used_micros = 2600000', 'true'),
      budgets('window_used_micros = 2600000'),
    ],
    () => [],
  ),
  plant(
    'a hold that was released and is counted still',
    [`update farebox.holds set state = 2, held_micros = 0 where id = ':manualCredit'`],
    ({ adjustment, checkout }) => [
      [USED, `budget ${adjustment}`],
      [USED, `budget ${checkout}`],
      [WINDOW, `budget ${checkout}`],
    ],
  ),
  plant('a limit that was passed', [budgets('limit_micros = 2999999')], ({ checkout }) => [
    [LIMIT, `budget ${checkout}`],
  ]),
  plant(
    'a limit that was set below what was used',
    [budgets('limit_micros = 1, used_at_limit_micros = 3000000')],
    () => [],
  ),
  plant(
    'a limit of a window that was passed',
    [budgets('window_limit_micros = 2999999')],
    ({ checkout }) => [[LIMIT, `budget ${checkout}`]],
  ),
  plant(
    'marks that are ahead',
    [budgets('notice_at = 7200000, window_notice_at = 4000000')],
    () => [],
  ),
  plant('a mark that is not of its limit', [budgets('notice_at = 7200001')], ({ checkout }) => [
    [MARK, `budget ${checkout}`],
  ]),
  plant(
    'a mark that was reached and made no event',
    [
      budgets('window_limit_micros = 3750000'),
      'alter table farebox.budgets disable trigger budgets_note_marks',
      budgets('window_notice_at = 3000000'),
      'alter table farebox.budgets enable trigger budgets_note_marks',
    ],
    ({ checkout }) => [[MARK, `budget ${checkout}`]],
  ),
  plant(
    'a budget that was moved below another one',
    [
      `update farebox.budget_details set path = '{7,2}' where id = ':checkout'`,
      `update farebox.spend_keys set path = '{1}' where id = ':manual'`,
      `delete from farebox.budget_spending where consumer_id = ':consumer' and budget = 2`,
      budgets('used_micros = 0, window_used_micros = 0'),
    ],
    ({ checkout, manual }) => [
      [PATH, `budget ${checkout}`],
      [KEY_PATH, `key ${manual}`],
    ],
  ),
  plant(
    'a budget that is older than the one above it',
    [
      budgets('number = 9', 'number = 1'),
      `update farebox.budget_details set number = 9, path = '{9}' where id = ':adjustment'`,
      `update farebox.budget_details set path = '{9,2}' where id = ':checkout'`,
      `update farebox.spend_keys set path = '{9,2}' where id = ':manual'`,
      `update farebox.budget_spending set budget = 9 where consumer_id = ':consumer' and budget = 1`,
    ],
    ({ checkout }) => [[PATH, `budget ${checkout}`]],
  ),
  plant(
    'a budget that is closed for the debit alone',
    [budgets('is_closed = true')],
    ({ checkout }) => [[PATH, `budget ${checkout}`]],
  ),
  plant(
    'the closed budget of a developer whom keys of the account would pay',
    [
      budgets('is_closed = true'),
      `update farebox.budget_details set closed_at = now() where id = ':checkout'`,
      `update farebox.spend_keys set developer = 1 where id = ':manual'`,
    ],
    ({ account }) => [[BLOCKED, `account ${account}`]],
  ),
  plant(
    'an account that looks for closed budgets of developers and has none',
    [`update farebox.accounts set blocks_developers = true where id = ':account'`],
    ({ account }) => [[BLOCKED, `account ${account}`]],
  ),
  plant(
    'a charge and a hold of keys that nobody made',
    [
      `update farebox.charges set origin = int4send(9) where id = ':lastCharge'`,
      `update farebox.holds set spend_key = 8 where id = ':manualCredit'`,
      spending('spend_key = 9'),
      budgets('used_micros = 0, window_used_micros = 0', 'true'),
    ],
    ({ lastCharge, manualCredit }) => [
      [NAMED, `charge ${lastCharge}`],
      [NAMED, `hold ${manualCredit}`],
    ],
  ),
  plant(
    'a capture by another key than the one that reserved it',
    [
      `update farebox.charges set origin = int4send(0) || '\\x0000' || uuid_send(':manualCredit')
        where id = ':lastCharge'`,
      `delete from farebox.key_spending where consumer_id = ':consumer'`,
      budgets('used_micros = 2000000', 'true'),
      budgets('window_used_micros = 2000000'),
    ],
    ({ lastCharge }) => [[NAMED, `charge ${lastCharge}`]],
  ),
  plant(
    'a day on which a key spent a micro-dollar too much',
    [spending('amount_micros = amount_micros + 1', `span = 'day'`)],
    ({ manual }) => [
      [BY_DAY, `key ${manual}`],
      [IN_ALL, `key ${manual}`],
    ],
  ),
  plant(
    'a key that spent a micro-dollar too much in all',
    [spending('amount_micros = amount_micros + 1', `span = 'all'`)],
    ({ manual }) => [
      [IN_ALL, `key ${manual}`],
      [OF_KEY, `key ${manual}`],
    ],
  ),
  plant(
    'a charge that is missing in the spending of its key',
    [spending('charges = 0')],
    ({ manual }) => [[BY_DAY, `key ${manual}`]],
  ),
  plant(
    'a refund that the spending of the key never saw',
    [
      refund(400_000),
      `delete from farebox.earnings_tail where consumer_id = ':consumer'`,
      budgets('used_micros = 2600000', 'true'),
      budgets('window_used_micros = 2600000'),
    ],
    ({ manual }) => [
      [BY_DAY, `key ${manual}`],
      [OF_KEY, `key ${manual}`],
    ],
  ),
  plant(
    'a flush of the tail that counts what a key spent once more',
    [
      `insert into farebox.key_spending_tail
          (ledger, ledgers, consumers, charge_group, spend_keys, developers, tools, days, amounts)
        select ledger, array[ledger], array[consumer_id], '{1}', '{1}', array[developer], array[tool],
          array[(uuid_extract_timestamp(id) at time zone 'UTC')::date], array[amount_micros]
        from farebox.charges where id = ':lastCharge'`,
    ],
    ({ manual }) => [
      [BY_DAY, `key ${manual}`],
      [OF_KEY, `key ${manual}`],
    ],
  ),
  plant(
    'a flush of the tail whose consumer was not debited',
    [
      `insert into farebox.key_spending_tail
          (ledger, ledgers, consumers, charge_group, spend_keys, developers, tools, days, amounts)
        select ledger, array[ledger], array[null::uuid], '{1}', '{1}', array[developer], array[tool],
          array[current_date], array[amount_micros]
        from farebox.charges where id = ':lastCharge'`,
    ],
    () => [],
  ),
  plant(
    'a developer to which the keys of a budget paid a micro-dollar too much',
    [
      `update farebox.budget_spending set amount_micros = amount_micros + 1
        where consumer_id = ':consumer' and budget = 1 and grouped_by = 'developer' and span = 'day'`,
    ],
    ({ adjustment }) => [[OF_BUDGET, `budget ${adjustment}`]],
  ),
  plant(
    'a tool that the spending of a budget lacks',
    [
      `delete from farebox.budget_spending
        where consumer_id = ':consumer' and budget = 2 and grouped_by = 'tool' and span = 'all'`,
    ],
    ({ checkout }) => [[OF_BUDGET, `budget ${checkout}`]],
  ),
];
