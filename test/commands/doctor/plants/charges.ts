/** Faults of a charge or its refunds. */
import { TEST_ACCOUNT, TEST_DEVELOPER, type Plant, type Planted } from '../planted-books.ts';

const CONSUMER = 'a charge has a consumer';
const SUM = 'spent is the sum of charges';
const FOLLOW = 'charges follow each other without gap or overlap';
const KEY = 'an idempotency key made at most one charge that is not refunded';
const REFUNDS = 'refunds of a charge follow each other and do not exceed it';
const CREDITED = 'charge refunds equal their credits';
const ORDER = 'charges are in the order of their times';
const DEVELOPER = 'a charge names a developer';
const MODES = 'no charge is between a live and a test account';
const LEFT = 'a charge left a balance that was credited';
const SHOWN = 'a charge can be shown';
const NAMED = 'a refund of a charge is credited by a movement that names the charge';
const TIME = 'a refund of a charge and its credit are of one time';
const AFTER = 'a refund of a charge was made after the charge';
const CARD = 'a charge by a rate card names a card that its tool has had';
const SECRET = 'the secret of every receipt is configured';

const setCharge = (charge: 'firstCharge' | 'lastCharge', assignments: string) =>
  `update farebox.charges set ${assignments} where id = ':${charge}'`;
const setConsumer = (assignments: string) =>
  `update farebox.consumers set ${assignments} where id = ':consumer'`;
const keyed = (hash: number, fingerprint: number) =>
  `update farebox.charges set idempotency_hash = ${hash}, request_fingerprint = ${fingerprint}
    where consumer_id = ':consumer'`;
/** A refund of the first charge; its movement has the same `id`. */
const refund = (id: string, micros: number, more = {}) => {
  const { reason = `'chg_' || replace(':firstCharge', '-', '')`, refundedMicros = micros } =
    more as {
      reason?: string;
      refundedMicros?: number;
    };
  return [
    `insert into farebox.charge_refunds (id, ledger, consumer_id, charge_id, developer, tool,
        charge_micros, amount_micros, refunded_micros, spent_micros)
      select ${id}, ledger, consumer_id, id, developer, tool, amount_micros, ${micros}, ${refundedMicros},
        spent_micros - ${refundedMicros - micros}
      from farebox.charges where id = ':firstCharge'`,
    `insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros, reason, created_at)
      select ledger, id, ${id}, 'charge_refund', ${micros}, ${reason}, uuid_extract_timestamp(${id})
      from farebox.consumers where id = ':consumer'`,
    setConsumer(`refunded_micros = refunded_micros + ${micros}`),
  ];
};
const AN_HOUR_AGO = `uuidv7('-1 hour'::interval)`;
const hexOf = (uuid: string) => uuid.replaceAll('-', '');

export const CHARGE_PLANTS: readonly Plant[] = [
  { what: 'nothing', statements: [], finds: () => [] },
  {
    what: 'a lowered counter of spent money',
    statements: [setConsumer('spent_micros = 1000000')],
    finds: ({ consumer }) => [[SUM, `consumer ${consumer}`]],
  },
  {
    what: 'an amount that was changed',
    statements: [setCharge('lastCharge', 'amount_micros = amount_micros + 1')],
    finds: ({ consumer, lastCharge }) => [
      [SUM, `consumer ${consumer}`],
      [FOLLOW, `charge ${lastCharge}`],
    ],
  },
  {
    what: 'a charge that was lost',
    statements: [`delete from farebox.charges where id = ':firstCharge'`],
    finds: ({ consumer, lastCharge }) => [
      [SUM, `consumer ${consumer}`],
      [FOLLOW, `charge ${lastCharge}`],
    ],
  },
  {
    what: 'the last charge, lost together with its part of the counter: visible only in earnings',
    statements: [
      `delete from farebox.charges where id = ':lastCharge'`,
      setConsumer('spent_micros = 1000000'),
    ],
    finds: () => [],
  },
  {
    what: 'a charge that was written again',
    statements: [
      `insert into farebox.charges select (jsonb_populate_record(h, jsonb_build_object('id', ':adjustment'))).*
        from farebox.charges h where id = ':firstCharge'`,
    ],
    finds: ({ consumer, firstCharge }) => [
      [SUM, `consumer ${consumer}`],
      [FOLLOW, `charge ${firstCharge}`],
    ],
  },
  {
    what: 'charges of a consumer that is gone',
    statements: [
      `delete from farebox.movements where consumer_id = ':consumer'`,
      `delete from farebox.consumers where id = ':consumer'`,
    ],
    finds: ({ consumer, firstCharge, lastCharge }) => [
      [CONSUMER, `consumer ${consumer}`],
      [LEFT, `charge ${firstCharge}`],
      [LEFT, `charge ${lastCharge}`],
    ],
  },
  {
    what: 'charges that exchanged their places',
    statements: [
      `update farebox.charges set spent_micros = 3000000 - spent_micros where consumer_id = ':consumer'`,
    ],
    finds: ({ firstCharge }) => [
      [ORDER, `charge ${firstCharge}`],
      [LEFT, `charge ${firstCharge}`],
    ],
  },
  {
    what: 'a charge that begins below zero',
    statements: [setCharge('firstCharge', 'spent_micros = 999999')],
    finds: ({ firstCharge, lastCharge }) => [
      [FOLLOW, `charge ${firstCharge}`],
      [FOLLOW, `charge ${lastCharge}`],
      [LEFT, `charge ${firstCharge}`],
    ],
  },
  {
    what: 'a charge by the developer of a test account',
    statements: [...TEST_ACCOUNT, setCharge('firstCharge', `developer = ${TEST_DEVELOPER}`)],
    finds: ({ firstCharge }) => [[MODES, `charge ${firstCharge}`]],
  },
  {
    what: 'a balance after a charge that is below zero',
    statements: [setCharge('firstCharge', 'balance_micros = -1')],
    finds: ({ firstCharge }) => [[LEFT, `charge ${firstCharge}`]],
  },
  {
    what: 'a balance after a charge that was never credited',
    statements: [setCharge('lastCharge', 'balance_micros = 33000001')],
    finds: ({ lastCharge }) => [[LEFT, `charge ${lastCharge}`]],
  },
  {
    what: 'a balance after a charge that was lowered within what was credited: no other row has it',
    statements: [setCharge('lastCharge', 'balance_micros = 32999999')],
    finds: () => [],
  },
  {
    what: 'a developer that does not exist',
    statements: [setCharge('firstCharge', 'developer = 99999')],
    finds: ({ firstCharge }) => [[DEVELOPER, `charge ${firstCharge}`]],
  },
  {
    what: 'metadata that is not JSON',
    statements: [setCharge('firstCharge', `metadata = '{"a":'`)],
    finds: ({ firstCharge }) => [[SHOWN, `charge ${firstCharge}`]],
  },
  {
    what: 'metadata that is not an object',
    statements: [setCharge('firstCharge', `metadata = '[1]'`)],
    finds: ({ firstCharge }) => [[SHOWN, `charge ${firstCharge}`]],
  },
  {
    what: 'a tool without a name',
    statements: [setCharge('firstCharge', `tool = ''`)],
    finds: ({ firstCharge }) => [[SHOWN, `charge ${firstCharge}`]],
  },
  {
    what: 'an idempotency key whose request was lost',
    statements: [setCharge('firstCharge', 'idempotency_hash = 7')],
    finds: ({ firstCharge }) => [[SHOWN, `charge ${firstCharge}`]],
  },
  {
    what: 'a rate card that the tool never had',
    statements: [setCharge('lastCharge', `origin = int4send(0) || int2send(7::int2)`)],
    finds: ({ lastCharge }) => [[CARD, `charge ${lastCharge}`]],
  },
  {
    what: "a rate card that another developer's tool of this name had",
    statements: [
      `insert into farebox.tools (id, developer_id, name) values (':adjustment', uuidv7(), 'search')`,
      `insert into farebox.rate_cards (tool_id, version, units, unit_picos) values (':adjustment', 8, '{input}', '{1}')`,
      setCharge('lastCharge', `origin = int4send(0) || int2send(8::int2)`),
    ],
    finds: ({ lastCharge }) => [[CARD, `charge ${lastCharge}`]],
  },
  {
    what: 'a charge from the future',
    statements: [setCharge('lastCharge', `id = 'ffffffff-0000-7000-8000-000000000001'`)],
    finds: () => [[SHOWN, 'charge ffffffff-0000-7000-8000-000000000001']],
  },
  {
    what: 'a charge whose id has no time',
    statements: [setCharge('lastCharge', `id = 'ffffffff-0000-4000-8000-000000000001'`)],
    finds: () => [[SHOWN, 'charge ffffffff-0000-4000-8000-000000000001']],
  },
  {
    what: 'a receipt whose secret nobody has',
    statements: [setCharge('lastCharge', 'receipt_key = 99')],
    finds: ({ lastCharge }) => [[SECRET, `charge ${lastCharge}`]],
  },
  {
    what: 'a key that made two charges',
    statements: [keyed(1, 1)],
    finds: ({ consumer }) => [[KEY, `consumer ${consumer}`]],
  },
  {
    what: 'a key that made two charges, one of which was refunded in full, which is how it is put right',
    statements: [keyed(6, 1), ...refund(AN_HOUR_AGO, 1_000_000)],
    finds: () => [],
  },
  {
    what: 'a key that made two charges, one of which was refunded in part',
    statements: [keyed(7, 1), ...refund(AN_HOUR_AGO, 400_000)],
    finds: ({ consumer }) => [[KEY, `consumer ${consumer}`]],
  },
  {
    what: 'a key that made two charges of different bodies',
    statements: [keyed(2, 1), setCharge('lastCharge', 'request_fingerprint = 2')],
    finds: ({ consumer }) => [[KEY, `consumer ${consumer}`]],
  },
  {
    what: 'a key that made two charges 60 days apart',
    statements: [keyed(3, 1), setCharge('firstCharge', `id = uuidv7('-60 days'::interval)`)],
    finds: ({ consumer }) => [[KEY, `consumer ${consumer}`]],
  },
  {
    what: 'a key that was used again after 63 days, which is allowed',
    statements: [keyed(4, 1), setCharge('firstCharge', `id = uuidv7('-63 days'::interval)`)],
    finds: () => [],
  },
  {
    what: 'two keys with the same hash, which is allowed',
    statements: [keyed(5, 1), setCharge('lastCharge', 'request_fingerprint = 1::int8 << 40')],
    finds: () => [],
  },
  {
    what: 'two correct refunds of a charge',
    statements: [
      ...refund(AN_HOUR_AGO, 400_000),
      ...refund(AN_HOUR_AGO, 600_000, { refundedMicros: 1_000_000 }),
    ],
    finds: () => [],
  },
  {
    what: 'a refund of more than was charged',
    statements: refund(AN_HOUR_AGO, 1_000_001),
    finds: ({ firstCharge }) => [[REFUNDS, `charge ${firstCharge}`]],
  },
  {
    what: 'a refund that left a gap',
    statements: refund(AN_HOUR_AGO, 400_000, { refundedMicros: 500_000 }),
    finds: ({ firstCharge }) => [[REFUNDS, `charge ${firstCharge}`]],
  },
  ...['developer = 2', `tool = 'other'`].map((change) => ({
    what: `a refund that is of another developer or tool than its charge: ${change}`,
    statements: [
      ...refund(AN_HOUR_AGO, 1_000_000),
      `update farebox.charge_refunds set ${change} where charge_id = ':firstCharge'`,
    ],
    finds: ({ firstCharge }: Planted) => [[REFUNDS, `charge ${firstCharge}`]] as const,
  })),
  {
    what: 'a refund of a charge that is gone',
    statements: [
      ...refund(AN_HOUR_AGO, 1_000_000),
      `update farebox.charge_refunds set charge_id = ':adjustment' where consumer_id = ':consumer'`,
      `update farebox.movements set reason = 'chg_' || replace(':adjustment', '-', '')
        where consumer_id = ':consumer' and kind = 'charge_refund'`,
    ],
    finds: ({ adjustment }) => [[REFUNDS, `charge ${adjustment}`]],
  },
  {
    what: 'a refund that credited nobody',
    statements: [
      ...refund(AN_HOUR_AGO, 1_000_000),
      `delete from farebox.movements where consumer_id = ':consumer' and kind = 'charge_refund'`,
    ],
    finds: ({ consumer, firstCharge }) => [
      [CREDITED, `consumer ${consumer}`],
      [NAMED, `charge chg_${hexOf(firstCharge)}`],
    ],
  },
  {
    what: 'a raised counter of refunded money',
    statements: [setConsumer('refunded_micros = 1')],
    finds: ({ consumer }) => [[CREDITED, `consumer ${consumer}`]],
  },
  {
    what: 'a refund that was credited for another charge',
    statements: refund(AN_HOUR_AGO, 1_000_000, {
      reason: `'chg_' || replace(':lastCharge', '-', '')`,
    }),
    finds: ({ firstCharge, lastCharge }) => [
      [NAMED, `charge chg_${hexOf(firstCharge)}`],
      [NAMED, `charge chg_${hexOf(lastCharge)}`],
    ],
  },
  {
    what: 'a refund that its consumer has at another time than its developer',
    statements: [
      ...refund(AN_HOUR_AGO, 1_000_000),
      `update farebox.movements set created_at = created_at - interval '20 minutes'
        where consumer_id = ':consumer' and kind = 'charge_refund'`,
    ],
    finds: ({ firstCharge }) => [[TIME, `charge chg_${hexOf(firstCharge)}`]],
  },
  {
    what: 'a refund from before the charge',
    statements: refund(`':manualCredit'::uuid`, 1_000_000).map((statement) =>
      statement.replace(`':manualCredit'::uuid, 'charge_refund'`, `uuidv7(), 'charge_refund'`),
    ),
    finds: ({ firstCharge }) => [[AFTER, `charge ${firstCharge}`]],
  },
];
