/** Schemas of a consumer's balance and usage (specification section 4.1). */
import { Type, type Static } from 'typebox';
import { AUTO_TOP_UP_STATUSES } from '../domain/top-up.ts';
import { ListedCharge } from './charges.ts';
import {
  Closed,
  Dollars,
  DollarsAskedOrNull,
  DollarsOrNull,
  Id,
  pageMarks,
  TimeBound,
  TimeOf,
  Word,
} from './shapes.ts';

export const BalanceReply = Closed({
  balance: Dollars('Dollars that can be spent now.', 9.95),
  debt: Dollars(
    'Dollars that refunds and disputes took back after they were spent. The next credits repay them.',
    0,
  ),
  held: Dollars(
    'Dollars on hold, which `balance` does not include: open holds and leases reserve them, or payments are disputed.',
    0,
  ),
  consumerId: Id('consumer', 'Your consumer id.'),
  autoTopUp: Closed(
    {
      status: Word(AUTO_TOP_UP_STATUSES, 'Whether automatic top-ups are on.'),
      reason: Type.Union([Type.String(), Type.Null()], {
        description:
          'Why automatic top-ups are waiting or were turned off: a code such as `card_declined` or `payment_disputed`.',
        examples: [null],
      }),
    },
    { description: 'Automatic top-ups from the saved card. The owner of the account sets them.' },
  ),
});
export type BalanceReply = Static<typeof BalanceReply>;

/** Specification section 2, Charge. */
export const UsageReply = Closed({
  charges: Type.Array(ListedCharge),
  total: Dollars(
    'Dollars of all matching charges, not only this page, less the refunds made in the same period.',
  ),
  ...pageMarks,
});
export type UsageReply = Static<typeof UsageReply>;

export const UsageByDayQuery = Closed({
  from: TimeBound('The beginning of the first UTC day: a date or time in ISO 8601.', '2026-11-01'),
});
export type UsageByDayQuery = Static<typeof UsageByDayQuery>;

export const UsageByDayReply = Closed({
  days: Type.Array(
    Closed({
      from: TimeOf('When the UTC day begins.', '2026-11-21T00:00:00.000Z'),
      spent: Dollars('Dollars charged on that day, less refunds.'),
    }),
  ),
});
export type UsageByDayReply = Static<typeof UsageByDayReply>;

export const LowBalanceBody = Closed({
  threshold: DollarsAskedOrNull(
    'A charge or hold that leaves less than this, in dollars, makes a `balance.low` event. A number, or a decimal ' +
      'string such as "5.00". Null: no event.',
    5,
  ),
});
export type LowBalanceBody = Static<typeof LowBalanceBody>;

export const LowBalanceReply = Closed({
  threshold: DollarsOrNull(
    'A charge or hold that leaves less than this, in dollars, makes a `balance.low` event. Null: no event.',
    5,
  ),
});
export type LowBalanceReply = Static<typeof LowBalanceReply>;
