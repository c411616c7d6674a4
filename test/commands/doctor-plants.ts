/** Faults for doctor to find, each with what it has to say about it. */

/** A consumer with 10 dollars of one top-up, of which two charges of 1 dollar are spent. UUIDs. */
export interface Planted {
  readonly consumer: string;
  readonly topUp: string;
  /** Of the developer who made all the charges. */
  readonly developer: string;
  readonly firstCharge: string;
  readonly lastCharge: string;
}

interface Plant {
  readonly what: string;
  /** Statements with `$1` for the consumer, run past the schema's own guards. */
  readonly statements: readonly string[];
  /** The check, and the finding's subject, or its detail where the subject's id is not known. */
  readonly finds: (planted: Planted) => readonly (readonly [check: string, ...oneOf: string[]])[];
}

export const GUARDS = `
  alter table farebox.consumers drop constraint consumers_not_overspent;
  drop index farebox.movements_top_up_once;
  drop index farebox.top_ups_one_automatic;
`;

export const HOURS = 'the hours and the tail of earnings are what was charged';
const DAYS = 'the days and all time of earnings are their hours';
const PAID_BY = 'what top-ups paid and the tail of it are what charges took of their lots';

const PENDING = '01a1fd3e-1130-7735-a9c9-eeaa940085c9';

/** A hold of 1 dollar: its state, what it holds, captured and in how many charges, and its key. */
const hold = (values: string) => `
  insert into farebox.holds (id, ledger, consumer_id, developer, tool, amount_micros, balance_micros,
    expires_at, state, held_micros, captured_micros, captures, idempotency_hash, request_fingerprint)
  select uuidv7(), ledger, id, 1, 'search', 1000000, 7000000, '2100-01-01Z', v.state, v.held,
    v.captured, v.captures, v.key::int8, 1
  from farebox.consumers, (values (${values})) as v (state, held, captured, captures, key)
  where id = $1`;

export const PLANTS: readonly Plant[] = [
  {
    what: 'a consumer that overspent',
    statements: [
      'update farebox.consumers set spent_micros = 11000000 where id = $1',
      `update farebox.charges set amount_micros = 10000000, spent_micros = 11000000
        where consumer_id = $1 and spent_micros = 2000000`,
    ],
    finds: ({ consumer, topUp, developer }) => [
      ['no balance is negative', `consumer ${consumer}`],
      [PAID_BY, `top-up ${topUp}`],
      // Of all plants that change a charge, which are charges of one hour.
      [HOURS, `developer ${developer}`],
    ],
  },
  {
    what: 'a movement that was deleted',
    statements: ['delete from farebox.movements where consumer_id = $1'],
    finds: ({ consumer, topUp }) => [
      ['credited is the sum of movements', `consumer ${consumer}`],
      ['a completed top-up is credited once, in full', `top-up ${topUp}`],
    ],
  },
  {
    what: 'a balance that was raised by hand',
    statements: [
      'update farebox.consumers set credited_micros = credited_micros + 1 where id = $1',
    ],
    finds: ({ consumer }) => [
      ['credited is the sum of movements', `consumer ${consumer}`],
      ['lots follow each other and end at credited', `consumer ${consumer}`],
    ],
  },
  {
    what: 'a lot that was shifted',
    statements: [
      `update farebox.lots set from_micros = from_micros + 1, to_micros = to_micros + 1
        where consumer_id = $1`,
    ],
    finds: ({ consumer, topUp }) => [
      ['lots follow each other and end at credited', `consumer ${consumer}`],
      [PAID_BY, `top-up ${topUp}`],
    ],
  },
  {
    what: "a charge's amount that was changed",
    statements: [
      `update farebox.charges set amount_micros = amount_micros + 1
        where consumer_id = $1 and spent_micros = 2000000`,
    ],
    finds: ({ consumer, lastCharge, topUp }) => [
      ['spent is the sum of charges', `consumer ${consumer}`],
      ['charges follow each other without gap or overlap', `charge ${lastCharge}`],
      [PAID_BY, `top-up ${topUp}`],
    ],
  },
  {
    what: 'two charges that took the same money',
    statements: [
      `update farebox.charges set spent_micros = 1000000
        where consumer_id = $1 and spent_micros = 2000000`,
    ],
    finds: ({ firstCharge, lastCharge }) => [
      [
        'charges follow each other without gap or overlap',
        `charge ${firstCharge}`,
        `charge ${lastCharge}`,
      ],
    ],
  },
  {
    what: 'a charge that was lost',
    statements: ['delete from farebox.charges where consumer_id = $1 and spent_micros = 1000000'],
    finds: ({ consumer, lastCharge, topUp }) => [
      ['spent is the sum of charges', `consumer ${consumer}`],
      ['charges follow each other without gap or overlap', `charge ${lastCharge}`],
      [PAID_BY, `top-up ${topUp}`],
    ],
  },
  {
    what: 'a key that made two charges',
    statements: [
      `update farebox.charges set idempotency_hash = 1, request_fingerprint = 1
        where consumer_id = $1`,
    ],
    finds: ({ consumer }) => [['an idempotency key made one charge', `consumer ${consumer}`]],
  },
  {
    what: 'charges of nobody',
    statements: [
      'delete from farebox.lots where consumer_id = $1',
      'delete from farebox.movements where consumer_id = $1',
      'delete from farebox.top_ups where consumer_id = $1',
      'delete from farebox.consumers where id = $1',
    ],
    finds: ({ consumer, topUp }) => [
      ['a charge has a consumer', `consumer ${consumer}`],
      [PAID_BY, `top-up ${topUp}`],
    ],
  },
  {
    what: 'a top-up that is credited twice',
    statements: [
      `insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros, top_up_id)
        select ledger, consumer_id, uuidv7(), kind, amount_micros, top_up_id
        from farebox.movements where consumer_id = $1`,
      `insert into farebox.lots (ledger, consumer_id, movement_id, from_micros, to_micros, top_up_id)
        select l.ledger, l.consumer_id, m.id, l.to_micros, l.to_micros * 2, l.top_up_id
        from farebox.lots l join farebox.movements m using (ledger, consumer_id)
        where l.consumer_id = $1 and m.id <> l.movement_id`,
      'update farebox.consumers set credited_micros = credited_micros * 2 where id = $1',
    ],
    finds: ({ topUp }) => [['a completed top-up is credited once, in full', `top-up ${topUp}`]],
  },
  {
    what: 'a top-up that is credited and not completed',
    statements: [`update farebox.top_ups set status = 'failed' where consumer_id = $1`],
    finds: ({ topUp }) => [['a completed top-up is credited once, in full', `top-up ${topUp}`]],
  },
  {
    what: 'a completed top-up without its credit',
    statements: [
      'delete from farebox.charges where consumer_id = $1',
      'delete from farebox.lots where consumer_id = $1',
      'delete from farebox.movements where consumer_id = $1',
      'update farebox.consumers set credited_micros = 0, spent_micros = 0 where id = $1',
    ],
    finds: ({ topUp }) => [
      ['a completed top-up is credited once, in full', `top-up ${topUp}`],
      [PAID_BY, `top-up ${topUp}`],
    ],
  },
  {
    what: 'a credit without a top-up',
    statements: ['delete from farebox.top_ups where consumer_id = $1'],
    finds: ({ topUp }) => [['a credit names its top-up and its consumer', `top-up ${topUp}`]],
  },
  {
    what: 'a month that took more from the card than its owner allowed',
    statements: [
      `insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, amount_micros,
          consent_ceiling_micros)
        select uuidv7(), ledger, consumer_id, account_id, 'direct', 3000000, 5000000
        from farebox.top_ups, generate_series(1, 2) where consumer_id = $1`,
    ],
    finds: ({ consumer }) => [
      ['no month took more from a saved card than its owner allowed', `consumer ${consumer}`],
    ],
  },
  {
    what: 'two automatic top-ups at once, of more than the owner set for a month',
    statements: [
      `insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, amount_micros,
          automatic, consent_ceiling_micros, automatic_ceiling_micros)
        select uuidv7(), ledger, consumer_id, account_id, 'direct', 3000000, true, 9000000, 5000000
        from farebox.top_ups, generate_series(1, 2) where consumer_id = $1`,
    ],
    finds: ({ consumer }) => [
      ['no month took more from a saved card than its owner allowed', `consumer ${consumer}`],
      ['a consumer has at most one automatic top-up under way', `consumer ${consumer}`],
    ],
  },
  {
    what: 'money that is held for nothing',
    statements: ['update farebox.consumers set held_micros = 1 where id = $1'],
    finds: ({ consumer }) => [
      ['held is what open disputes hold, but for what holds reserve', `consumer ${consumer}`],
    ],
  },
  {
    what: 'money that is reserved for no hold',
    statements: ['update farebox.consumers set held_micros = 1, reserved_micros = 1 where id = $1'],
    finds: ({ consumer }) => [['reserved is what open holds hold', `consumer ${consumer}`]],
  },
  {
    what: 'an open hold that nothing is reserved for and no sweep looks at',
    statements: [hold('0, 1000000, 0, 0, null')],
    finds: ({ consumer }) => [
      ['reserved is what open holds hold', `consumer ${consumer}`],
      ['an open hold is looked at when it expires', 'expires at 2100-01-01 00:00:00+00'],
    ],
  },
  {
    what: 'a hold that captured what nobody was charged',
    statements: [hold('1, 0, 1000000, 1, null')],
    finds: () => [['what a hold captured is its charges', 'captured 1000000 in 1, charges 0 in 0']],
  },
  {
    what: 'a charge of a hold that nobody placed',
    statements: [
      `update farebox.charges set origin = '\\x000000000000' || uuid_send(id)
        where consumer_id = $1 and spent_micros = 2000000`,
    ],
    finds: ({ lastCharge }) => [['what a hold captured is its charges', `hold ${lastCharge}`]],
  },
  {
    what: 'a key that placed two holds',
    statements: [hold('2, 0, 0, 0, 7'), hold('2, 0, 0, 0, 7')],
    finds: ({ consumer }) => [['an idempotency key placed one hold', `consumer ${consumer}`]],
  },
  {
    what: 'a lost dispute that took nothing of what it says',
    statements: [
      `insert into farebox.reversals (id, ledger, consumer_id, top_up_id, kind, status, amount_micros,
          taken_micros, processor_id)
        select uuidv7(), ledger, consumer_id, id, 'dispute', 'lost', 1000000, 1000000, 'dp_1'
        from farebox.top_ups where consumer_id = $1`,
      `update farebox.top_ups set status = 'charged_back' where consumer_id = $1`,
    ],
    finds: () => [
      ['a refund or dispute took what its movements say', 'lost, took 1000000, movements 0'],
    ],
  },
  {
    what: 'a debt beside a balance, and a dispute that its top-up does not show',
    statements: [
      `insert into farebox.reversals (id, ledger, consumer_id, top_up_id, kind, status, amount_micros,
          processor_id)
        select uuidv7(), ledger, consumer_id, id, 'dispute', 'open', 1000000, 'dp_2'
        from farebox.top_ups where consumer_id = $1`,
    ],
    finds: ({ consumer, topUp }) => [
      ['nobody has a debt and a balance', `consumer ${consumer}`],
      ['a top-up has the status that its refunds and disputes give', `top-up ${topUp}`],
    ],
  },
  {
    what: 'a day of earnings that was changed',
    statements: [
      `update farebox.earnings set amount_micros = amount_micros + 1
        where span = 'day' and $1::uuid is not null`,
    ],
    finds: ({ developer }) => [[DAYS, `developer ${developer}`]],
  },
  {
    what: 'a refund of more than was charged, which nobody was credited',
    statements: [
      `insert into farebox.charge_refunds (id, ledger, consumer_id, charge_id, developer, tool,
          charge_micros, amount_micros, refunded_micros, spent_micros)
        select uuidv7(), ledger, consumer_id, id, developer, tool, 2000000, 1000001, 1000001,
          spent_micros
        from farebox.charges where consumer_id = $1 and spent_micros = 2000000`,
    ],
    finds: ({ consumer, lastCharge, topUp }) => [
      ['refunds of a charge follow each other and end within it', `charge ${lastCharge}`],
      ['what went back of charges is credited', `consumer ${consumer}`],
      [PAID_BY, `top-up ${topUp}`],
    ],
  },
  {
    what: 'a notice that nobody delivers',
    statements: [
      `insert into farebox.outbox (topic, subject_id, created_at, attempts)
        values ('payment_reported', $1, now() - interval '11 minutes', 7)`,
    ],
    finds: ({ consumer }) => [
      ['every notice is delivered within ten minutes', `payment_reported ${consumer}`],
    ],
  },
  {
    what: 'a direct top-up that does not end',
    statements: [
      `insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, amount_micros,
          created_at, opened_at)
        select '${PENDING}', ledger, consumer_id, account_id, 'direct', 1000000,
          now() - interval '61 minutes', now()
        from farebox.top_ups where consumer_id = $1`,
    ],
    finds: () => [['every top-up ends in its time', `top-up ${PENDING}`]],
  },
  {
    what: 'an automatic top-up that is put off, and a checkout that is open: nothing that is off',
    statements: [
      `insert into farebox.outbox (topic, subject_id, created_at, next_attempt_at)
        values ('auto_top_up', $1, now() - interval '2 days', now() + interval '1 hour')`,
      `insert into farebox.top_ups (id, ledger, consumer_id, account_id, method, amount_micros,
          created_at, opened_at)
        select uuidv7(), ledger, consumer_id, account_id, 'checkout', 1000000,
          now() - interval '1 day', now()
        from farebox.top_ups where consumer_id = $1`,
    ],
    finds: () => [],
  },
  {
    what: 'nothing that is off',
    statements: [],
    finds: () => [],
  },
];
