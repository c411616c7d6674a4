/** Faults of holds: their reserved money, their captures, and holds that never end. */
import { TEST_ACCOUNT, TEST_DEVELOPER, type Plant, type Planted } from '../planted-books.ts';

const RESERVED = 'reserved equals open holds';
const CAPTURED = 'the captured amount of a hold equals its charges';
const DUE = 'every open hold is scheduled to expire';
const MODES = 'no hold is between a live and a test account';
const LEASE = 'a lease is a hold, and what it held was settled, released or is still held';
const LEASED = 'a charge of a lease is for one of its tools, and at most its price';
const KEY = 'an idempotency key placed at most one hold that took money';

/** A hold of $1.00: its state, the amounts held and captured, the number of its charges, and its key. */
const hold = (id: string, values: string) => `
  insert into farebox.holds (id, ledger, consumer_id, developer, tool, amount_micros, balance_micros,
    expires_at, state, held_micros, captured_micros, captures, idempotency_hash, request_fingerprint)
  select ${id}, ledger, id, 1, 'search', 1000000, 7000000, '2100-01-01Z', v.state, v.held,
    v.captured, v.captures, v.key::int8, 1
  from farebox.consumers, (values (${values})) as v (state, held, captured, captures, key)
  where id = ':consumer'`;
/** A released lease of $1.00 for `other`, with the amounts settled and released, and the number of its charges. */
const lease = (settled: string, released: string, charges: number) => [
  `insert into farebox.holds (id, ledger, consumer_id, developer, tool, amount_micros, balance_micros, expires_at,
      state, held_micros, captured_micros, captures)
    select ${ID}, ledger, id, 1, '', 1000000, 7000000, '2100-01-01Z', 2, 0, ${settled}, ${charges}
    from farebox.consumers where id = ':consumer'`,
  `insert into farebox.leases (id, ledger, consumer_id, developer, released_micros, tools, asked_prices, prices,
      highest_prices)
    select ${ID}, ledger, id, 1, ${released}, array['other'], array[null::int8], array[1000000], array[1000000]
    from farebox.consumers where id = ':consumer'`,
];
/** The id of a movement that belongs to no hold. */
const ID = `':adjustment'::uuid`;

const CHARGED = `(select amount_micros from farebox.charges where id = ':lastCharge')`;

/** A lease for `other` that the last charge, for this tool, settled. */
const settled = (tool: string) => [
  ...lease(CHARGED, `1000000 - ${CHARGED}`, 1),
  `update farebox.charges set tool = '${tool}', origin = '\\x000000000000' || uuid_send(${ID})
    where id = ':lastCharge'`,
];

/** Schedules the consumer's holds, as each of them is when it is placed. */
const EXPIRY = `
  insert into farebox.hold_expiries (ledger, due_at, developers, holds)
  select ledger, min(expires_at), array_agg(developer), array_agg(id) from farebox.holds
  where consumer_id = ':consumer' group by ledger`;
const capture = (charge: string, id: string) =>
  `update farebox.charges set tool = 'search', developer = 1, origin = '\\x000000000000' || uuid_send(${id})
    where id = '${charge}'`;
/** Two holds of one key, which the two charges captured. */
const capturedTwice = (key: number) => [
  hold(`':manualCredit'::uuid`, `1, 0, 1000000, 1, ${key}`),
  hold(ID, `1, 0, ${CHARGED}, 1, ${key}`),
  capture(':firstCharge', `':manualCredit'::uuid`),
  capture(':lastCharge', ID),
];
const refundOfFirst = (micros: number) =>
  `insert into farebox.charge_refunds (id, ledger, consumer_id, charge_id, developer, tool, charge_micros,
      amount_micros, refunded_micros, spent_micros)
    select uuidv7(), ledger, consumer_id, id, developer, tool, amount_micros, ${micros}, ${micros}, spent_micros
    from farebox.charges where id = ':firstCharge'`;

export const HOLD_PLANTS: readonly Plant[] = [
  { what: 'nothing', statements: [], finds: () => [] },
  {
    what: 'reserved money without a hold',
    statements: [
      `update farebox.consumers set held_micros = 1, reserved_micros = 1 where id = ':consumer'`,
    ],
    finds: ({ consumer }) => [[RESERVED, `consumer ${consumer}`]],
  },
  {
    what: 'an open hold without reserved money, which no sweep looks at',
    statements: [hold(ID, '0, 1000000, 0, 0, null')],
    finds: ({ consumer, adjustment }) => [
      [RESERVED, `consumer ${consumer}`],
      [DUE, `hold ${adjustment}`],
    ],
  },
  {
    what: 'an open hold that was extended, for which only the sweep at its earlier expiry is scheduled',
    statements: [
      hold(ID, '0, 0, 0, 0, null'),
      EXPIRY,
      `update farebox.holds set expires_at = expires_at + interval '1 second' where id = ${ID}`,
    ],
    finds: ({ adjustment }) => [[DUE, `hold ${adjustment}`]],
  },
  {
    what: 'an open hold that is scheduled for another developer, for whom the sweep does not find it',
    statements: [
      hold(ID, '0, 0, 0, 0, null'),
      EXPIRY,
      `update farebox.hold_expiries set developers = '{999}' where ${ID} = any (holds)`,
    ],
    finds: ({ adjustment }) => [[DUE, `hold ${adjustment}`]],
  },
  {
    what: 'a hold with a capture that nobody was charged for',
    statements: [hold(ID, '1, 0, 1000000, 1, null')],
    finds: ({ adjustment }) => [[CAPTURED, `hold ${adjustment}`]],
  },
  {
    what: 'a hold that captured less than its charge took',
    statements: [hold(ID, `1, 0, ${CHARGED} - 1, 1, null`), capture(':lastCharge', ID)],
    finds: ({ adjustment }) => [[CAPTURED, `hold ${adjustment}`]],
  },
  {
    what: 'a hold that counts a capture too many',
    statements: [hold(ID, `1, 0, ${CHARGED}, 2, null`), capture(':lastCharge', ID)],
    finds: ({ adjustment }) => [[CAPTURED, `hold ${adjustment}`]],
  },
  ...['other', 'zoom'].map((tool) => ({
    what: `a hold for search with a charge for ${tool}`,
    statements: [
      hold(ID, `1, 0, 2 * ${CHARGED}, 2, null`),
      capture(':firstCharge', ID),
      capture(':lastCharge', ID),
      `update farebox.charges set tool = '${tool}' where id = ':lastCharge'`,
    ],
    finds: ({ adjustment }: Planted) => [[CAPTURED, `hold ${adjustment}`]] as const,
  })),
  {
    what: 'a charge of a hold that nobody placed',
    statements: [
      `update farebox.charges set origin = '\\x000000000000' || uuid_send(id) where id = ':lastCharge'`,
    ],
    finds: ({ lastCharge }) => [[CAPTURED, `hold ${lastCharge}`]],
  },
  {
    what: 'a hold by the developer of a test account',
    statements: [
      hold(ID, '2, 0, 0, 0, null'),
      ...TEST_ACCOUNT,
      `update farebox.holds set developer = ${TEST_DEVELOPER} where id = ${ID}`,
    ],
    finds: ({ adjustment }) => [[MODES, `hold ${adjustment}`]],
  },
  {
    what: 'a lease of which a cent was neither settled nor released',
    statements: lease('0', '990000', 0),
    finds: ({ adjustment }) => [[LEASE, `lease ${adjustment}`]],
  },
  {
    what: 'a lease with a charge that took more than it held',
    statements: [
      ...lease('0', '1000000', 0),
      `update farebox.holds set overflow_charge = ':lastCharge' where id = ${ID}`,
    ],
    finds: ({ adjustment }) => [[LEASE, `lease ${adjustment}`]],
  },
  {
    what: 'a charge of a lease for a tool that it does not have',
    statements: settled('search'),
    finds: ({ lastCharge }) => [[LEASED, `charge ${lastCharge}`]],
  },
  {
    what: 'a charge of a lease for one of its tools',
    statements: settled('other'),
    finds: () => [],
  },
  {
    what: 'a charge of a lease above the highest price of its tool',
    statements: [
      ...settled('other'),
      `update farebox.leases set highest_prices = '{999999}' where id = ${ID}`,
    ],
    finds: ({ lastCharge }) => [[LEASED, `charge ${lastCharge}`]],
  },
  {
    what: 'a charge of a lease by another developer',
    statements: [
      ...settled('other'),
      `update farebox.charges set developer = 2 where id = ':lastCharge'`,
    ],
    finds: ({ lastCharge, adjustment }) => [
      [LEASED, `charge ${lastCharge}`],
      [CAPTURED, `hold ${adjustment}`],
      [CAPTURED, `hold ${adjustment}`],
    ],
  },
  {
    what: 'a key that placed two holds that are open',
    statements: [hold('uuidv7()', '0, 0, 0, 0, 7'), hold('uuidv7()', '0, 0, 0, 0, 7'), EXPIRY],
    finds: ({ consumer }) => [[KEY, `consumer ${consumer}`]],
  },
  {
    what: 'a key that placed two holds 60 days apart',
    statements: [
      hold(`uuidv7('-60 days'::interval)`, '0, 0, 0, 0, 8'),
      hold('uuidv7()', '0, 0, 0, 0, 8'),
      EXPIRY,
    ],
    finds: ({ consumer }) => [[KEY, `consumer ${consumer}`]],
  },
  {
    what: 'a key that placed another hold after 63 days, which is allowed',
    statements: [
      hold(`uuidv7('-63 days'::interval)`, '0, 0, 0, 0, 9'),
      hold('uuidv7()', '0, 0, 0, 0, 9'),
      EXPIRY,
    ],
    finds: () => [],
  },
  {
    what: 'a key that placed two holds, one of which was released, which is how it is put right',
    statements: [hold('uuidv7()', '0, 0, 0, 0, 10'), hold('uuidv7()', '2, 0, 0, 0, 10'), EXPIRY],
    finds: () => [],
  },
  {
    what: 'a key that placed two holds, both of which were captured',
    statements: capturedTwice(11),
    finds: ({ consumer }) => [[KEY, `consumer ${consumer}`]],
  },
  {
    what: 'a key that placed two holds that were captured, the charge of one of which was refunded in part',
    statements: [...capturedTwice(12), refundOfFirst(400_000)],
    finds: ({ consumer }) => [[KEY, `consumer ${consumer}`]],
  },
  {
    what: 'a key that placed two holds that were captured, the charge of one of which was refunded, which is how it is put right',
    statements: [...capturedTwice(13), refundOfFirst(1_000_000)],
    finds: () => [],
  },
];
