/** Faults of approvals: questions that nobody takes up, raises that do not apply, and calls that none allowed. */
import type { Plant, Planted } from '../planted-books.ts';

const ENDS = 'every approval has a workflow and ends on time';
const APPLIES = 'a limit that an approval raised is the one that applies';
const ONCE = 'an approval of one call was used once, by a call that it allows';

/** A budget of $5.00, and a question about it of an hour ago that is answered in a day. */
const asked = (id: string, set: string) => [
  `insert into farebox.budgets (ledger, consumer_id, number, limit_micros)
    select ledger, id, 1, 5000000 from farebox.consumers where id = ':consumer' on conflict do nothing`,
  `insert into farebox.approvals (id, account_id, ledger, consumer_id, spend_key, developer, developer_id, tool,
      amount_micros, code, budget, scope, limit_micros, asked_by, created_at, begun_at, expires_at)
    select '${id}', ':account', ledger, id, 1, 1, ':developer', 'search', 1000000, 'spend_limit_reached', 1, 'total',
      4000000, 'payer', now() - interval '1 hour', now(), now() + interval '1 day'
    from farebox.consumers where id = ':consumer'`,
  `update farebox.approvals set ${set} where id = '${id}'`,
];
const decided = (decision: string, set: string, id = ':checkout') =>
  asked(id, `status = 'approved', decision = '${decision}', decided_at = now(), ${set}`);
const raised = (toMicros: number) =>
  decided('raise', `is_raise_in_force = true, raised_to_micros = ${toMicros}`);
const setBudget = (set: string) =>
  `update farebox.budgets set ${set} where consumer_id = ':consumer'`;
const ofScope = (scope: string) =>
  `update farebox.approvals set scope = '${scope}' where id = ':checkout'`;
const HELD_BY_KEY = `
  insert into farebox.holds (id, ledger, consumer_id, developer, tool, amount_micros, balance_micros, expires_at,
      held_micros, spend_key)
    select ':manualCredit', ledger, id, 1, 'search', 1000000, 7000000, '2100-01-01Z', 1000000, 1
    from farebox.consumers where id = ':consumer'`;
const PAID_BY_KEY = `update farebox.charges set origin = int4send(1) where id = ':lastCharge'`;

export const APPROVAL_PLANTS: readonly Plant[] = [
  { what: 'an open question', statements: asked(':checkout', 'id = id'), finds: () => [] },
  {
    what: 'a question that no workflow took up',
    statements: asked(':checkout', 'begun_at = null'),
    finds: ({ checkout }) => [[ENDS, `approval ${checkout}`]],
  },
  {
    what: 'a question that is open after its end',
    statements: asked(':checkout', `expires_at = now() - interval '11 minutes'`),
    finds: ({ checkout }) => [[ENDS, `approval ${checkout}`]],
  },
  { what: 'a raise that applies', statements: raised(5_000_000), finds: () => [] },
  {
    what: 'a raise that its budget does not have',
    statements: raised(6_000_000),
    finds: ({ checkout }) => [[APPLIES, `approval ${checkout}`]],
  },
  {
    what: 'a raise of a window that applies',
    statements: [
      ...raised(6_000_000),
      ofScope('window'),
      setBudget('window_limit_micros = 6000000'),
    ],
    finds: () => [],
  },
  {
    what: 'a raise of one call that applies',
    statements: [
      ...raised(6_000_000),
      ofScope('per_call'),
      `insert into farebox.budget_details (id, ledger, consumer_id, number, path, name, max_per_call_micros)
        select ':adjustment', ledger, id, 1, '{1}', 'a test', 6000000 from farebox.consumers where id = ':consumer'`,
    ],
    finds: () => [],
  },
  ...['window', 'per_call'].map((scope) => ({
    what: `a raise that its budget has in all, and not for the scope ${scope}`,
    statements: [...raised(5_000_000), ofScope(scope)],
    finds: ({ checkout }: Planted) => [[APPLIES, `approval ${checkout}`]] as const,
  })),
  {
    what: 'a raise of a budget that is gone',
    statements: [
      ...raised(5_000_000),
      `delete from farebox.budgets where consumer_id = ':consumer'`,
    ],
    finds: ({ checkout }) => [[APPLIES, `approval ${checkout}`]],
  },
  {
    what: 'a one-time approval that its call used',
    statements: [PAID_BY_KEY, ...decided('once', `used_by = ':lastCharge'`)],
    finds: () => [],
  },
  {
    what: 'a one-time approval that its hold used',
    statements: [HELD_BY_KEY, ...decided('once', `used_by = ':manualCredit'`)],
    finds: () => [],
  },
  ...['amount_micros = 999999', 'developer = 2', `tool = 'other'`, 'spend_key = 2'].flatMap((set) =>
    (
      [
        ['charge', PAID_BY_KEY, ':lastCharge'],
        ['hold', HELD_BY_KEY, ':manualCredit'],
      ] as const
    ).map(([what, used, id]) => ({
      what: `a one-time approval of a call with ${set} that another ${what} used`,
      statements: [used, ...decided('once', `used_by = '${id}', ${set}`)],
      finds: ({ checkout }: Planted) => [[ONCE, `approval ${checkout}`]] as const,
    })),
  ),
  {
    what: 'a one-time approval that a call used which nobody made',
    statements: decided('once', `used_by = ':adjustment'`),
    finds: ({ checkout }) => [[ONCE, `approval ${checkout}`]],
  },
  {
    what: 'two approvals for once that one call used',
    statements: [
      PAID_BY_KEY,
      ...decided('once', `used_by = ':lastCharge'`),
      ...decided('once', `used_by = ':lastCharge'`, ':adjustment'),
    ],
    finds: ({ checkout, adjustment }) => [
      [ONCE, `approval ${checkout}`],
      [ONCE, `approval ${adjustment}`],
    ],
  },
];
