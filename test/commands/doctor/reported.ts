/**
 * The corruptions by which an expert reader first tried doctor, each with the title of the plant, or of the test, that
 * injects it now; or why no row, no schema and nothing at the processor shows it.
 */

/** What no other row repeats. */
export interface Unprovable {
  readonly unprovable: string;
}

export const REPORTED: Readonly<Record<string, string | Unprovable>> = {
  'two unspent lots exchange their top-ups': 'two lots that exchanged their top-ups',
  'the border between two lots moves': 'a border between two lots that was moved',
  "an adjustment's lot is given to a top-up": "an adjustment's lot that was given to a top-up",
  "a lot becomes nobody's": "a top-up's lot that became nobody's",
  'the movement of a lot names nothing': 'a lot that names no movement',
  'two top-ups exchange their payments':
    'names each top-up that differs, with both amounts and the payments, and nothing else',
  'a top-up loses its payment': 'a payment that was lost',
  'a direct top-up becomes one by hand': 'a direct top-up that became one by hand',
  'charges stop asking for automatic top-ups that are on':
    'automatic top-ups that are on, and that no charge asks for',
  'charges stop asking for automatic top-ups that wait':
    'automatic top-ups that wait, and that no charge asks for',
  'charges ask for automatic top-ups that are off':
    'automatic top-ups that are off, and that charges ask for',
  "a consumer's row is missing": 'a consumer whose row is gone',
  'an account and its consumer are in different ledgers':
    'an account that was moved to another ledger',
  "a refund's movement names another top-up": "a refund's movement that names another top-up",
  "a refund's movement names another consumer":
    "a refund's movement that belongs to another consumer",
  'a refund names another top-up': 'a refund that names another top-up',
  'a refund names another consumer': 'a refund that was moved to another consumer',
  'a direct top-up has no ceiling':
    'a direct top-up without the ceiling that it was accepted under',
  'the index that credits a top-up once is dropped': 'the index by which a top-up is credited once',
  'the constraint against overspending is dropped':
    'the constraint that keeps a balance from going below zero',
  'the index of idempotency keys is dropped': 'the index by which a key is found',
  "the outbox's trigger is dropped": 'the trigger that writes deliveries',
  'the function that decides what fits is replaced': 'a function that accepts every charge',
  'a charge has an unknown receipt key': 'a receipt whose secret nobody has',
  'metadata is no JSON': 'metadata that is not JSON',
  'a top-up is pending for 60 days': 'a checkout that has been pending for 60 days',
  'two invented adjustments cancel out': 'two invented adjustments that add up to zero',
  'a movement is dated into a closed month': 'a movement that was moved to a closed month',
  'two charges exchange their places': 'charges that exchanged their places',
  'earnings have duplicate rows': 'a sum that exists twice, in two halves',
  'the reason of an adjustment is rewritten': 'an adjustment whose reason was rewritten',
  'half of an idempotency key is lost': 'an idempotency key whose request was lost',
  "a charge's balance is lowered": {
    unprovable:
      'credits, holds and disputes change balances between charges, and only their order under a lock is known; ' +
      'a balance below zero, or above all credits, is found',
  },
  'a charge loses its whole idempotency key': {
    unprovable: 'a charge may be made without a key',
  },
  'the name of a tool is changed in a charge and its earnings': {
    unprovable: 'developers name tools as they like',
  },
  'the time of a top-up is changed': {
    unprovable:
      'a top-up that a restore takes over has an earlier id; the time of its credit is found',
  },
  'credited is raised': 'a balance that was raised by hand',
  'credited is lowered': 'a balance that was lowered by hand',
  'spent is lowered': 'a lowered counter of spent money',
  'held is raised': 'held money without a dispute',
  'refunded is raised': 'a raised counter of refunded money',
  'the earnings of an hour are changed': 'an amount of an hour that was changed',
  'the earnings of all time are changed': 'a changed sum of all time',
  'the payments from a top-up are changed': 'a changed sum of a top-up’s payments',
  'a charge is deleted': 'a charge that was lost',
  'a charge is changed': 'an amount that was changed',
  'the last charge is deleted, and its part of the counter':
    'the last charge that was lost, together with its part of the counter',
  'a credited top-up becomes failed': 'a credited top-up that says that it failed',
  'a top-up becomes refunded': 'a refunded top-up without a refund',
  'a lost dispute took too little': 'a lost dispute that took less than its amount',
  'a requested refund took too little': 'a requested refund that took less than it says',
  'the mark of a minute is lost': 'a minute whose mark was lost',
  'a minute is marked without a charge': 'a minute that is marked without a reason',
};

/** Checks that no plant fails, with the test that makes each fail. */
export const SHOWN_ELSEWHERE: Readonly<Record<string, readonly [file: string, title: string]>> = {
  'the ledger agrees with the processor': [
    'commands/doctor/processor.spec.ts',
    'names each top-up that differs, with both amounts and the payments, and nothing else',
  ],
  'the database has the records of its migrations, and its sequences are ahead of its rows': [
    'migrations/records.spec.ts',
    'is reported by doctor when functions are not recorded, or a number would be given twice',
  ],
  'the last complete reconciliation is recent': [
    'commands/doctor/delivery.spec.ts',
    'reports an overdue reconciliation, once top-ups are old enough',
  ],
  'PostgreSQL archives its WAL, if it is set to': [
    'store/doctor/archive-check.slow.spec.ts',
    'is reported while its command fails, and no longer once the files are archived',
  ],
  'Temporal has the search attributes': [
    'commands/doctor/delivery.spec.ts',
    'reports search attributes that Temporal does not have',
  ],
  'Temporal has the schedules as defined, and none is paused': [
    'commands/doctor/delivery.spec.ts',
    'reports schedules that Temporal does not have, that are paused, and that differ',
  ],
  'no workflow fails in its code': [
    'commands/doctor/delivery.spec.ts',
    'reports workflows that cannot continue because their code fails',
  ],
  'no workflow waits for a build that no worker runs': [
    'temporal/builds.slow.spec.ts',
    'take over the runs of a build without workers, and report them until then',
  ],
  'archived charges have the same sums wherever they are kept': [
    'http/charges/archived-months.spec.ts',
    'a number of charges that was changed',
  ],
  'the earnings of archived months equal their charges': [
    'http/charges/archived-months.spec.ts',
    'a tool that was changed',
  ],
};
