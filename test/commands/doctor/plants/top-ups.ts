/** Faults of a top-up, its refunds and disputes, or of automatic top-ups. */
import type { Plant } from '../planted-books.ts';

const ONCE = 'a completed top-up is credited once, in full';
const NAMED = 'a credit names its top-up and its consumer';
const CEILING = 'no month took more from a saved card than its owner allowed';
const ONE_AUTOMATIC = 'a consumer has at most one automatic top-up in progress';
const HELD = 'held equals open disputes plus open holds';
const TOOK = 'a refund or dispute took the sum of its movements';
const DEBT = 'nobody has both a debt and a balance';
const STATUS = 'the status of a top-up matches its refunds and disputes';
const TAX = 'the refunds, or disputes, of a payment have its tax in proportion';
const ACCOUNT = 'a top-up is for the consumer of its account';
const METHOD = 'a top-up has the fields that its method needs';
const ONE_PAYMENT = 'a payment pays for one top-up';
const SEEN = 'a top-up was credited because Stripe showed it as paid';
const ENDED = 'a top-up records when it was completed, or why it failed';
const OWNER = "a refund or dispute belongs to its top-up's consumer";
const REFUNDED = 'a refund by an operator names a top-up of that account';
const REQUESTED = 'every refund whose request is recorded was requested';
const AGREES = 'a movement agrees with its refund or dispute';
const ASKS = 'charges request automatic top-ups while they are on';

const setTopUp = (assignments: string) =>
  `update farebox.top_ups set ${assignments} where id = ':checkout'`;
const setConsumer = (assignments: string) =>
  `update farebox.consumers set ${assignments} where id = ':consumer'`;
/** Pending, so it needs no movement. */
const direct = (id: string, assignments = 'id = id') => [
  `insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, amount_micros,
      consent_ceiling_micros)
    select ${id}, ledger, consumer_id, account_id, 'direct', 3000000, 5000000
    from farebox.top_ups where id = ':checkout'`,
  `update farebox.top_ups set ${assignments} where consumer_id = ':consumer' and method = 'direct'`,
];
/** Its id is a charge's, which no other reversal has. It took and held nothing. */
const reversal = (kind: string, status: string, micros: number, takenMicros: number) =>
  `insert into farebox.reversals (id, ledger, consumer_id, top_up_id, kind, status, amount_micros,
      taken_micros, processor_id)
    select ':firstCharge', ledger, consumer_id, id, '${kind}', '${status}', ${micros}, ${takenMicros},
      'made_:firstCharge'
    from farebox.top_ups where id = ':checkout'`;
const taking = (kind: string, topUp: string) =>
  `insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros, top_up_id, reversal_id)
    select ledger, consumer_id, ':lastCharge', '${kind}', -1000000, ${topUp}, ':firstCharge'
    from farebox.top_ups where id = ':checkout'`;
/** The record of an operator, and that of a command, that the refund `:firstCharge` was requested. */
const acted = (topUp: string) =>
  `insert into farebox.operator_actions (id, operator_account_id, account_id, idempotency_key, kind, amount_micros,
      top_up_id, reason)
    values (':firstCharge', ':account', ':account', ':firstCharge', 'refund', 1000000, ${topUp}, 'asked')`;
const keyed = (topUp: string) =>
  `insert into farebox.refund_keys (idempotency_key, ledger, consumer_id, top_up_id, reversal_id, amount_micros)
    select 'key_:firstCharge', ledger, id, ${topUp}, ':firstCharge', 1000000
    from farebox.consumers where id = ':consumer'`;
const automatic = (status: string) =>
  `insert into farebox.auto_top_ups (ledger, consumer_id, threshold_micros, amount_micros,
      ceiling_micros, status, reason)
    select ledger, id, 1000000, 5000000, 50000000, '${status}',
      case when '${status}' <> 'on' then 'card_declined' end
    from farebox.consumers where id = ':consumer'`;

export const TOP_UP_PLANTS: readonly Plant[] = [
  { what: 'nothing', statements: [], finds: () => [] },
  {
    what: 'a credited top-up that says that it failed',
    statements: [
      setTopUp(`status = 'failed', failure_code = 'card_declined', completed_at = null`),
    ],
    finds: ({ checkout }) => [[ONCE, `top-up ${checkout}`]],
  },
  {
    what: 'a credited top-up that waits for its payment again',
    statements: [setTopUp(`status = 'pending'`)],
    finds: ({ checkout }) => [
      [ONCE, `top-up ${checkout}`],
      [ENDED, `top-up ${checkout}`],
    ],
  },
  {
    what: 'a completed top-up without its credit',
    statements: [`delete from farebox.movements where id = ':checkoutCredit'`],
    finds: ({ checkout }) => [[ONCE, `top-up ${checkout}`]],
  },
  {
    what: 'a top-up that is credited twice',
    statements: [
      `insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros, top_up_id)
        select ledger, consumer_id, ':firstCharge', kind, amount_micros, top_up_id
        from farebox.movements where id = ':checkoutCredit'`,
    ],
    finds: ({ checkout }) => [[ONCE, `top-up ${checkout}`]],
  },
  {
    what: 'a top-up whose amount was changed',
    statements: [setTopUp('amount_micros = amount_micros + 1')],
    finds: ({ checkout }) => [[ONCE, `top-up ${checkout}`]],
  },
  {
    what: 'a credit whose top-up is gone',
    statements: [`delete from farebox.top_ups where id = ':checkout'`],
    finds: ({ checkoutCredit }) => [[NAMED, `movement ${checkoutCredit}`]],
  },
  {
    what: 'a month that took more from the card than its owner allowed',
    statements: [...direct('uuidv7()'), ...direct('uuidv7()')],
    finds: ({ consumer }) => [[CEILING, `consumer ${consumer}`]],
  },
  {
    what: 'a month that was credited more than its owner allowed, with a top-up that was requested earlier',
    statements: [
      ...direct(
        `':firstCharge'`,
        "created_at = now() - interval '1 month', status = 'completed', completed_at = now()",
      ),
      ...direct('uuidv7()'),
    ],
    finds: ({ consumer, firstCharge }) => [
      [ONCE, `top-up ${firstCharge}`],
      [METHOD, `top-up ${firstCharge}`],
      [CEILING, `consumer ${consumer}`],
    ],
  },
  {
    what: 'automatic top-ups of more than the owner set for a month, two at once',
    statements: [
      ...direct('uuidv7()'),
      ...direct(
        'uuidv7()',
        'automatic = true, automatic_ceiling_micros = 5000000, consent_ceiling_micros = 9000000',
      ),
    ],
    finds: ({ consumer }) => [
      [CEILING, `consumer ${consumer}`],
      [ONE_AUTOMATIC, `consumer ${consumer}`],
    ],
  },
  {
    what: 'a direct top-up without the ceiling that it was accepted under',
    statements: direct(`':firstCharge'`, 'consent_ceiling_micros = null'),
    finds: ({ firstCharge }) => [[METHOD, `top-up ${firstCharge}`]],
  },
  {
    what: 'an automatic top-up without its own ceiling',
    statements: direct(`':firstCharge'`, 'automatic = true'),
    finds: ({ firstCharge }) => [[METHOD, `top-up ${firstCharge}`]],
  },
  {
    what: 'a ceiling of automatic top-ups on one that was asked for',
    statements: direct(`':firstCharge'`, 'automatic_ceiling_micros = 5000000'),
    finds: ({ firstCharge }) => [[METHOD, `top-up ${firstCharge}`]],
  },
  {
    what: 'a direct top-up that became one by hand',
    statements: direct(`':firstCharge'`, `method = 'manual'`),
    finds: ({ firstCharge }) => [[METHOD, `top-up ${firstCharge}`]],
  },
  {
    what: 'a checkout that became one by hand, and so needs no payment',
    statements: [setTopUp(`method = 'manual'`)],
    finds: ({ checkout }) => [[METHOD, `top-up ${checkout}`]],
  },
  {
    what: 'a top-up by hand that became a checkout',
    statements: [`update farebox.top_ups set method = 'checkout' where id = ':manual'`],
    finds: ({ manual }) => [[METHOD, `top-up ${manual}`]],
  },
  {
    what: 'a checkout that became one of play money, outside test mode',
    statements: [setTopUp(`method = 'test', session_id = null, payment_intent_id = null`)],
    finds: ({ checkout }) => [[METHOD, `top-up ${checkout}`]],
  },
  {
    what: 'a top-up of play money that has a payment',
    statements: direct(
      `':firstCharge'`,
      `method = 'test', ledger = 2048, consent_ceiling_micros = null, payment_intent_id = 'pi_:firstCharge'`,
    ),
    finds: ({ firstCharge }) => [
      [METHOD, `top-up ${firstCharge}`],
      [ACCOUNT, `top-up ${firstCharge}`],
    ],
  },
  {
    what: 'a payment that was lost',
    statements: [setTopUp('payment_intent_id = null')],
    finds: ({ checkout }) => [[METHOD, `top-up ${checkout}`]],
  },
  {
    what: 'a credit for what the processor showed as expired',
    statements: [setTopUp(`seen_verdict = 'expired', seen_at = now()`)],
    finds: ({ checkout }) => [[SEEN, `top-up ${checkout}`]],
  },
  {
    what: 'a payment that was seen, and never credited',
    statements: direct(
      `':firstCharge'`,
      `payment_intent_id = 'pi_:firstCharge', seen_verdict = 'paid', seen_micros = amount_micros,
        seen_at = now() - interval '2 hours'`,
    ),
    finds: ({ firstCharge }) => [[SEEN, `top-up ${firstCharge}`]],
  },
  {
    what: 'a payment that was seen just now',
    statements: direct(
      `':firstCharge'`,
      `payment_intent_id = 'pi_:firstCharge', seen_verdict = 'paid', seen_micros = amount_micros,
        seen_at = now()`,
    ),
    finds: () => [],
  },
  {
    what: 'a payment that two top-ups name',
    statements: direct(`':firstCharge'`, `payment_intent_id = 'pi_:checkout'`),
    finds: ({ checkout }) => [[ONE_PAYMENT, `payment pi_${checkout}`]],
  },
  {
    what: "a top-up that was moved to another's account",
    statements: [setTopUp(`account_id = ':consumer'`)],
    finds: ({ checkout }) => [[ACCOUNT, `top-up ${checkout}`]],
  },
  {
    what: 'a top-up that was moved to another ledger',
    statements: [setTopUp('ledger = ledger + 100')],
    finds: ({ checkout, checkoutCredit }) => [
      [ACCOUNT, `top-up ${checkout}`],
      [ONCE, `top-up ${checkout}`],
      [NAMED, `movement ${checkoutCredit}`],
    ],
  },
  {
    what: 'a completed top-up that does not say when',
    statements: [setTopUp('completed_at = null')],
    finds: ({ checkout }) => [[ENDED, `top-up ${checkout}`]],
  },
  {
    what: 'a failed top-up that does not say why',
    statements: direct(`':firstCharge'`, `status = 'failed'`),
    finds: ({ firstCharge }) => [[ENDED, `top-up ${firstCharge}`]],
  },
  {
    what: 'held money without a dispute',
    statements: [setConsumer('held_micros = 1')],
    finds: ({ consumer }) => [[HELD, `consumer ${consumer}`]],
  },
  {
    what: 'a lost dispute that took less than its amount',
    statements: [
      reversal('dispute', 'lost', 1_000_000, 1_000_000),
      setTopUp(`status = 'charged_back'`),
    ],
    finds: ({ firstCharge }) => [[TOOK, `reversal ${firstCharge}`]],
  },
  {
    what: 'a lost dispute that returned tax which nobody paid',
    statements: [
      reversal('dispute', 'lost', 1_000_000, 1_000_000),
      taking('dispute', `':checkout'`),
      `update farebox.movements set tax_micros = -1 where id = ':lastCharge'`,
      setTopUp(`status = 'charged_back'`),
    ],
    finds: ({ firstCharge }) => [[TOOK, `reversal ${firstCharge}`]],
  },
  {
    what: 'a requested refund that took less than it says',
    statements: [
      reversal('refund', 'requested', 2_000_000, 2_000_000),
      taking('refund', `':checkout'`),
      setTopUp(`status = 'partially_refunded'`),
    ],
    finds: ({ firstCharge }) => [[TOOK, `reversal ${firstCharge}`]],
  },
  {
    what: 'a debt beside a balance, and a dispute that its top-up does not show',
    statements: [reversal('dispute', 'open', 1_000_000, 0)],
    finds: ({ consumer, checkout }) => [
      [DEBT, `consumer ${consumer}`],
      [STATUS, `top-up ${checkout}`],
    ],
  },
  {
    what: 'a lost dispute that its top-up does not show',
    statements: [
      reversal('dispute', 'lost', 1_000_000, 1_000_000),
      taking('dispute', `':checkout'`),
    ],
    finds: ({ checkout }) => [[STATUS, `top-up ${checkout}`]],
  },
  {
    what: 'a whole refund that its top-up shows as one in part',
    statements: [
      reversal('refund', 'made', 20_000_000, 1_000_000),
      `update farebox.reversals set held_micros = 19000000 where id = ':firstCharge'`,
      taking('refund', `':checkout'`),
      setTopUp(`status = 'partially_refunded'`),
    ],
    finds: ({ checkout }) => [[STATUS, `top-up ${checkout}`]],
  },
  {
    what: 'a refunded top-up without a refund',
    statements: [setTopUp(`status = 'refunded'`)],
    finds: ({ checkout }) => [[STATUS, `top-up ${checkout}`]],
  },
  {
    what: 'a refund that was moved to another consumer',
    statements: [
      reversal('refund', 'failed', 1_000_000, 0),
      `update farebox.reversals set consumer_id = ':account' where id = ':firstCharge'`,
    ],
    finds: ({ firstCharge }) => [[OWNER, `reversal ${firstCharge}`]],
  },
  {
    what: "an operator's refund of a top-up that is not there",
    statements: [
      `insert into farebox.operator_actions (id, operator_account_id, account_id, idempotency_key, kind, amount_micros,
          top_up_id, reason)
        values (':lastCharge', ':account', ':account', ':lastCharge', 'refund', 1000000, ':firstCharge', 'asked')`,
    ],
    finds: ({ lastCharge }) => [
      [REFUNDED, `action ${lastCharge}`],
      [REQUESTED, `action ${lastCharge}`],
    ],
  },
  {
    what: 'a refund that an operator recorded, and that failed',
    statements: [reversal('refund', 'failed', 1_000_000, 0), acted(`':checkout'`)],
    finds: () => [],
  },
  {
    what: 'a refund that a command recorded, and that failed',
    statements: [reversal('refund', 'failed', 1_000_000, 0), keyed(`':checkout'`)],
    finds: () => [],
  },
  {
    what: 'a refund that an operator recorded and nobody requested',
    statements: [acted(`':checkout'`)],
    finds: ({ firstCharge }) => [[REQUESTED, `action ${firstCharge}`]],
  },
  {
    what: 'a refund that a command recorded and nobody requested',
    statements: [keyed(`':checkout'`)],
    finds: ({ firstCharge }) => [[REQUESTED, `key key_${firstCharge}`]],
  },
  {
    what: 'a refund that a command recorded for another top-up',
    statements: [reversal('refund', 'failed', 1_000_000, 0), keyed(`':manual'`)],
    finds: ({ firstCharge }) => [[REQUESTED, `key key_${firstCharge}`]],
  },
  {
    what: 'a dispute that a command recorded as its refund',
    statements: [reversal('dispute', 'won', 1_000_000, 0), keyed(`':checkout'`)],
    finds: ({ firstCharge }) => [[REQUESTED, `key key_${firstCharge}`]],
  },
  {
    what: "a refund's movement that names another top-up",
    statements: [
      reversal('refund', 'made', 1_000_000, 1_000_000),
      taking('refund', `':manual'`),
      setTopUp(`status = 'partially_refunded'`),
    ],
    finds: ({ lastCharge }) => [[AGREES, `movement ${lastCharge}`]],
  },
  {
    what: "a refund's movement that says that it is a dispute's",
    statements: [
      reversal('refund', 'made', 1_000_000, 1_000_000),
      taking('dispute', `':checkout'`),
      setTopUp(`status = 'partially_refunded'`),
    ],
    finds: ({ lastCharge }) => [[AGREES, `movement ${lastCharge}`]],
  },
  {
    what: "a refund's movement that belongs to another consumer",
    statements: [
      reversal('refund', 'made', 1_000_000, 1_000_000),
      taking('refund', `':checkout'`),
      `update farebox.movements set consumer_id = ':account' where id = ':lastCharge'`,
      setTopUp(`status = 'partially_refunded'`),
    ],
    finds: ({ lastCharge }) => [
      [AGREES, `movement ${lastCharge}`],
      [NAMED, `movement ${lastCharge}`],
    ],
  },
  {
    what: 'a refund that names another top-up',
    statements: [
      reversal('refund', 'made', 1_000_000, 1_000_000),
      taking('refund', `':checkout'`),
      `update farebox.reversals set top_up_id = ':manual' where id = ':firstCharge'`,
      setTopUp(`status = 'partially_refunded'`),
    ],
    finds: ({ lastCharge, checkout, manual }) => [
      [AGREES, `movement ${lastCharge}`],
      [STATUS, `top-up ${checkout}`],
      [STATUS, `top-up ${manual}`],
    ],
  },
  {
    what: 'a refund of tax that nobody paid',
    statements: [
      reversal('refund', 'failed', 1_000_000, 0),
      `update farebox.reversals set status = 'lost', kind = 'dispute', held_micros = 1000000,
        gross_micros = 1000001 where id = ':firstCharge'`,
      setTopUp(`status = 'charged_back'`),
    ],
    finds: ({ checkout }) => [[TAX, `top-up ${checkout}`]],
  },
  {
    what: 'a whole refund that kept the tax',
    statements: [
      reversal('refund', 'made', 20_000_000, 1_000_000),
      `update farebox.reversals set held_micros = 19000000 where id = ':firstCharge'`,
      taking('refund', `':checkout'`),
      setTopUp(`status = 'refunded', tax_micros = 2000000`),
    ],
    finds: ({ checkout }) => [[TAX, `top-up ${checkout}`]],
  },
  {
    what: 'a whole refund that took the tax from the balance',
    statements: [
      reversal('refund', 'made', 22_000_000, 1_000_000),
      `update farebox.reversals set held_micros = 21000000 where id = ':firstCharge'`,
      taking('refund', `':checkout'`),
      setTopUp(`status = 'refunded', tax_micros = 2000000`),
    ],
    finds: ({ checkout }) => [[TAX, `top-up ${checkout}`]],
  },
  {
    what: 'a movement whose refund is gone',
    statements: [taking('refund', `':checkout'`)],
    finds: ({ lastCharge }) => [[AGREES, `movement ${lastCharge}`]],
  },
  {
    what: 'a refund of a top-up whose row is gone',
    statements: [
      reversal('refund', 'made', 1_000_000, 1_000_000),
      taking('refund', `':checkout'`),
      `delete from farebox.top_ups where id = ':checkout'`,
    ],
    finds: ({ checkoutCredit, lastCharge, firstCharge }) => [
      [NAMED, `movement ${checkoutCredit}`],
      [NAMED, `movement ${lastCharge}`],
      [OWNER, `reversal ${firstCharge}`],
    ],
  },
  {
    what: 'automatic top-ups that are on, and that no charge asks for',
    statements: [automatic('on')],
    finds: ({ consumer }) => [[ASKS, `consumer ${consumer}`]],
  },
  {
    what: 'automatic top-ups that wait, and that no charge asks for',
    statements: [automatic('waiting')],
    finds: ({ consumer }) => [[ASKS, `consumer ${consumer}`]],
  },
  {
    what: 'automatic top-ups that are off, and that charges ask for',
    statements: [automatic('off'), setConsumer('auto_top_up_below_micros = 1000000')],
    finds: ({ consumer }) => [[ASKS, `consumer ${consumer}`]],
  },
  {
    what: 'automatic top-ups that nobody switched on, and that charges ask for',
    statements: [setConsumer('auto_top_up_below_micros = 1000000')],
    finds: ({ consumer }) => [[ASKS, `consumer ${consumer}`]],
  },
  {
    what: 'charges that ask below another balance than the owner set',
    statements: [automatic('on'), setConsumer('auto_top_up_below_micros = 999999')],
    finds: ({ consumer }) => [[ASKS, `consumer ${consumer}`]],
  },
  {
    what: 'correct automatic top-ups: on, requested, off, and in progress',
    statements: [automatic('on'), setConsumer('auto_top_up_below_micros = 1000000')],
    finds: () => [],
  },
  { what: 'automatic top-ups that are off', statements: [automatic('off')], finds: () => [] },
  {
    what: 'an automatic top-up in progress',
    statements: [
      automatic('on'),
      ...direct('uuidv7()', 'automatic = true, automatic_ceiling_micros = 5000000'),
    ],
    finds: () => [],
  },
  {
    what: 'a notice of an automatic top-up that a charge asked for',
    statements: [
      automatic('on'),
      `insert into farebox.outbox (topic, subject_id) values ('auto_top_up', ':consumer')`,
    ],
    finds: () => [],
  },
];
