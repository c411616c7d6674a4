/** Faults of a balance, its movements or its lots. */
import type { Plant } from '../planted-books.ts';

const COUNTED = 'credited is the sum of movements';
const SUMMED = 'the monthly sums match the movements';
const FOLLOW = 'lots are contiguous and end at credited';
const ONE_TO_ONE = 'each account has one consumer, and each consumer one account';
const SIGN = 'a movement has the sign of its kind, and a reason if nothing else explains it';
const BOOKED = 'the time of a movement matches its id';
const LOT_OF_CREDIT = 'every credit has a lot, for the same top-up and no larger';
const ORDER = 'lots are in the order of their credits';
const COMPARED = 'a charge compares the balance with the highest threshold that is armed';
const NOTED = 'a charge that crossed a threshold noted it';
const TOLD = 'an account with a webhook endpoint is told when its balance is used up';
const SIZE = 'a lot equals its credit less the amounts taken from it';
const RECORDED = 'every adjustment that is recorded was made';

/** The consumer's lots by their movement. */
const setLot = (movement: string, assignments: string) =>
  `update farebox.lots set ${assignments} where movement_id = ':${movement}'`;
const move = (id: string, kind: string, micros: number, topUp: string, reason: string) =>
  `insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros, top_up_id, reversal_id, reason,
      created_at)
    select ledger, id, ':${id}', '${kind}', ${micros}, ${topUp},
      case when ${topUp}::uuid is not null then uuidv7() end, ${reason}, uuid_extract_timestamp(':${id}'::uuid)
    from farebox.consumers where id = ':consumer'`;
const setConsumer = (assignments: string) =>
  `update farebox.consumers set ${assignments} where id = ':consumer'`;

/** The record of a command, and that of an operator, that there was this adjustment. */
const keyed = (micros: number, reason = 'a test') =>
  `insert into farebox.adjustment_keys (idempotency_key, ledger, consumer_id, amount_micros, reason)
    select ':consumer', ledger, id, ${micros}, '${reason}' from farebox.consumers where id = ':consumer'`;
const acted = (micros: number) =>
  `insert into farebox.operator_actions (id, operator_account_id, account_id, idempotency_key, kind, amount_micros,
      reason)
    values (':lastCharge', ':account', ':account', ':lastCharge', 'adjustment', ${micros}, 'a test')`;

/** Its balance is $33.00. */
const setThreshold = (belowMicros: number) =>
  `insert into farebox.thresholds (ledger, consumer_id, purpose, below_micros)
    select ledger, id, 'low_balance', ${belowMicros} from farebox.consumers where id = ':consumer'`;
const ENDPOINT = `insert into farebox.webhook_endpoints (id, account_id, url, secret_master)
  values (uuidv7(), ':account', 'https://example.com', 1)`;

export const BALANCE_PLANTS: readonly Plant[] = [
  { what: 'nothing', statements: [], finds: () => [] },
  {
    what: 'a balance that was raised by hand',
    statements: [setConsumer('credited_micros = credited_micros + 1')],
    finds: ({ consumer }) => [
      [COUNTED, `consumer ${consumer}`],
      [FOLLOW, `consumer ${consumer}`],
    ],
  },
  {
    what: 'a balance that was lowered by hand',
    statements: [setConsumer('credited_micros = credited_micros - 1')],
    finds: ({ consumer }) => [
      [COUNTED, `consumer ${consumer}`],
      [FOLLOW, `consumer ${consumer}`],
    ],
  },
  {
    what: 'a consumer that overspent',
    statements: [setConsumer('spent_micros = 35000001')],
    finds: ({ consumer }) => [['no balance is negative', `consumer ${consumer}`]],
  },
  {
    what: 'a movement that was deleted',
    statements: [`delete from farebox.movements where id = ':checkoutCredit'`],
    finds: ({ consumer, checkoutCredit }) => [
      [COUNTED, `consumer ${consumer}`],
      [LOT_OF_CREDIT, `movement ${checkoutCredit}`],
    ],
  },
  {
    what: 'a movement whose amount was changed',
    statements: [
      `update farebox.movements set amount_micros = amount_micros + 1 where id = ':adjustment'`,
    ],
    finds: ({ consumer }) => [[COUNTED, `consumer ${consumer}`]],
  },
  {
    what: 'a movement that was booked again',
    statements: [move('firstCharge', 'adjustment', 5_000_000, 'null', `'a test'`)],
    finds: ({ consumer, firstCharge }) => [
      [COUNTED, `consumer ${consumer}`],
      [LOT_OF_CREDIT, `movement ${firstCharge}`],
    ],
  },
  {
    what: 'a sum of movements that was changed',
    statements: [
      `update farebox.movement_sums set movements = movements + 1
        where consumer_id = ':consumer' and kind = 'adjustment'`,
    ],
    finds: ({ consumer }) => [[SUMMED, `consumer ${consumer}`]],
  },
  {
    what: 'two invented adjustments that add up to zero',
    statements: [
      move('firstCharge', 'adjustment', 1, 'null', `'a test'`),
      move('lastCharge', 'adjustment', -1, 'null', `'a test'`),
    ],
    finds: ({ firstCharge }) => [[LOT_OF_CREDIT, `movement ${firstCharge}`]],
  },
  {
    what: 'an adjustment that lost its reason',
    statements: [`update farebox.movements set reason = null where id = ':adjustment'`],
    finds: ({ adjustment }) => [[SIGN, `movement ${adjustment}`]],
  },
  {
    what: 'a credit of a refund that names no charge',
    statements: [
      `update farebox.movements set kind = 'charge_refund', reason = null where id = ':adjustment'`,
    ],
    finds: ({ adjustment }) => [[SIGN, `movement ${adjustment}`]],
  },
  {
    what: 'a credit that became a dispute',
    statements: [`update farebox.movements set kind = 'dispute' where id = ':checkoutCredit'`],
    finds: ({ checkoutCredit }) => [[SIGN, `movement ${checkoutCredit}`]],
  },
  {
    what: 'a movement that was moved to a closed month',
    statements: [
      `update farebox.movements set created_at = created_at - interval '40 days' where id = ':adjustment'`,
    ],
    finds: ({ adjustment }) => [
      [BOOKED, `movement ${adjustment}`],
      [ORDER, `movement ${adjustment}`],
    ],
  },
  {
    what: 'a movement whose id was made for another time',
    statements: [
      `update farebox.movements set id = ':lastCharge' where id = ':adjustment'`,
      setLot('adjustment', `movement_id = ':lastCharge'`),
    ],
    finds: ({ lastCharge }) => [[BOOKED, `movement ${lastCharge}`]],
  },
  {
    what: 'a lot that was shifted',
    statements: [setLot('adjustment', 'from_micros = from_micros + 1, to_micros = to_micros + 1')],
    finds: ({ consumer }) => [[FOLLOW, `consumer ${consumer}`]],
  },
  {
    what: 'a lot between two others that was shifted',
    statements: [
      setLot('checkoutCredit', 'from_micros = from_micros + 1, to_micros = to_micros + 1'),
    ],
    finds: ({ consumer }) => [[FOLLOW, `consumer ${consumer}`]],
  },
  {
    what: 'a lot that was deleted',
    statements: [`delete from farebox.lots where movement_id = ':adjustment'`],
    finds: ({ consumer, adjustment }) => [
      [FOLLOW, `consumer ${consumer}`],
      [LOT_OF_CREDIT, `movement ${adjustment}`],
    ],
  },
  {
    what: 'two lots that exchanged their top-ups',
    statements: [
      setLot('manualCredit', `top_up_id = ':checkout'`),
      setLot('checkoutCredit', `top_up_id = ':manual'`),
    ],
    finds: ({ manual, checkout, manualCredit, checkoutCredit }) => [
      [LOT_OF_CREDIT, `movement ${manualCredit}`],
      [LOT_OF_CREDIT, `movement ${checkoutCredit}`],
      [SIZE, `top-up ${manual}`],
      [SIZE, `top-up ${checkout}`],
    ],
  },
  {
    what: 'a border between two lots that was moved',
    statements: [
      setLot('manualCredit', 'to_micros = 11000000'),
      setLot('checkoutCredit', 'from_micros = 11000000'),
    ],
    finds: ({ manual, checkout, manualCredit }) => [
      [LOT_OF_CREDIT, `movement ${manualCredit}`],
      [SIZE, `top-up ${manual}`],
      [SIZE, `top-up ${checkout}`],
    ],
  },
  {
    what: 'a border between two lots that was moved after a refund, within what was credited',
    statements: [
      move('firstCharge', 'refund', -3_000_000, `':checkout'`, 'null'),
      setConsumer('credited_micros = 32000000'),
      setLot('checkoutCredit', 'to_micros = 28000000'),
      setLot('adjustment', 'from_micros = 28000000, to_micros = 32000000'),
    ],
    finds: ({ checkout }) => [[SIZE, `top-up ${checkout}`]],
  },
  {
    what: 'correct lots after a refund',
    statements: [
      move('firstCharge', 'refund', -3_000_000, `':checkout'`, 'null'),
      setConsumer('credited_micros = 32000000'),
      setLot('checkoutCredit', 'to_micros = 27000000'),
      setLot('adjustment', 'from_micros = 27000000, to_micros = 32000000'),
    ],
    finds: () => [],
  },
  {
    what: "an adjustment's lot that was given to a top-up",
    statements: [setLot('adjustment', `top_up_id = ':checkout'`)],
    finds: ({ adjustment, checkout }) => [
      [LOT_OF_CREDIT, `movement ${adjustment}`],
      [SIZE, `top-up ${checkout}`],
    ],
  },
  {
    what: "a top-up's lot that became nobody's",
    statements: [setLot('checkoutCredit', 'top_up_id = null')],
    finds: ({ checkoutCredit }) => [[LOT_OF_CREDIT, `movement ${checkoutCredit}`]],
  },
  {
    what: 'a lot that names no movement',
    statements: [setLot('adjustment', `movement_id = ':lastCharge'`)],
    finds: ({ adjustment, lastCharge }) => [
      [LOT_OF_CREDIT, `movement ${adjustment}`],
      [LOT_OF_CREDIT, `movement ${lastCharge}`],
    ],
  },
  {
    what: 'lots that exchanged their places',
    statements: [
      setLot('adjustment', 'from_micros = 0, to_micros = 5000000'),
      setLot('manualCredit', 'from_micros = 5000000, to_micros = 15000000'),
      setLot('checkoutCredit', 'from_micros = 15000000, to_micros = 35000000'),
    ],
    finds: ({ manualCredit, checkoutCredit }) => [
      [ORDER, `movement ${manualCredit}`],
      [ORDER, `movement ${checkoutCredit}`],
    ],
  },
  {
    what: 'a consumer whose row is gone',
    statements: [`delete from farebox.consumers where id = ':consumer'`],
    finds: ({ account }) => [[ONE_TO_ONE, `account ${account}`]],
  },
  {
    what: 'an account that was moved to another ledger',
    statements: [`update farebox.accounts set ledger = ledger + 100 where id = ':account'`],
    finds: ({ account, consumer }) => [
      [ONE_TO_ONE, `account ${account}`],
      [ONE_TO_ONE, `consumer ${consumer}`],
    ],
  },
  {
    what: 'an account whose row is gone',
    statements: [`delete from farebox.accounts where id = ':account'`],
    finds: ({ consumer }) => [[ONE_TO_ONE, `consumer ${consumer}`]],
  },
  {
    what: 'an adjustment that a command recorded, and one that was made without a key',
    statements: [
      keyed(5_000_000),
      move('firstCharge', 'adjustment', -1, 'null', `'a test'`),
      setConsumer('credited_micros = credited_micros - 1'),
      setLot('adjustment', 'to_micros = to_micros - 1'),
    ],
    finds: () => [],
  },
  {
    what: 'an adjustment that an operator recorded',
    statements: [acted(5_000_000)],
    finds: () => [],
  },
  {
    what: 'an adjustment that a command recorded and nobody made',
    statements: [keyed(-2_000_000)],
    finds: ({ consumer }) => [[RECORDED, `consumer ${consumer}`]],
  },
  {
    what: 'an adjustment that an operator recorded and nobody made',
    statements: [acted(2_000_000)],
    finds: ({ consumer }) => [[RECORDED, `consumer ${consumer}`]],
  },
  {
    what: 'an adjustment that was made for another reason than the recorded one',
    statements: [keyed(5_000_000, 'another')],
    finds: ({ consumer }) => [[RECORDED, `consumer ${consumer}`]],
  },
  {
    what: 'an adjustment that a command and an operator recorded, and that was made once',
    statements: [keyed(5_000_000), acted(5_000_000)],
    finds: ({ consumer }) => [[RECORDED, `consumer ${consumer}`]],
  },
  {
    what: 'a correct threshold',
    statements: [setThreshold(33_000_000), ENDPOINT],
    finds: () => [],
  },
  {
    what: 'a threshold that charges do not compare with',
    statements: [setThreshold(5_000_000), setConsumer('notice_below_micros = null')],
    finds: ({ consumer }) => [[COMPARED, `consumer ${consumer}`]],
  },
  {
    what: 'a comparison with a threshold that nobody set',
    statements: [setConsumer('notice_below_micros = 5000000')],
    finds: ({ consumer }) => [[COMPARED, `consumer ${consumer}`]],
  },
  {
    what: 'a crossing that no charge noted',
    statements: [setThreshold(33_000_001)],
    finds: ({ consumer }) => [[NOTED, `consumer ${consumer}`]],
  },
  {
    what: 'an endpoint whose account lost its threshold',
    statements: [ENDPOINT, `delete from farebox.thresholds where consumer_id = ':consumer'`],
    finds: ({ account }) => [[TOLD, `account ${account}`]],
  },
];
