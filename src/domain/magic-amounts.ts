/**
 * Amounts that give an answer on demand, in test mode only (docs/test-mode.md). No price meets one by
 * accident: a charge of $0.99 with the status in its last digits, a direct top-up with the status in its
 * dollars.
 */
import type { ErrorCode } from './errors.ts';
import { microsOfDollars } from './money.ts';
import type { TopUpFailure } from './top-up.ts';

/** Charges and holds that are refused with this code: nothing happens. */
export const MAGIC_REFUSALS = new Map([
  [microsOf('0.990401'), 'invalid_api_key'],
  [microsOf('0.990402'), 'insufficient_balance'],
  [microsOf('0.990403'), 'spend_limit_reached'],
  [microsOf('0.990429'), 'rate_limited'],
  [microsOf('0.990503'), 'service_unavailable'],
] as const);
export type MagicRefusal = NonNullable<ReturnType<typeof MAGIC_REFUSALS.get>>;

/** Charges and holds that are made. The answer is lost or late; a repeat with the same Idempotency-Key gets it. */
export const LOST_MICROS = microsOf('0.990500');
export const LATE_MICROS = microsOf('0.990504');

/** Longer than the time-out of clients, shorter than that of proxies. */
export const LATE_MS = 10_000;

/** What a test top-up ends in instead of a credit. */
export type MagicTopUp =
  | { readonly kind: 'failed'; readonly failure: TopUpFailure }
  | {
      readonly kind:
        | 'consent_required'
        | 'consent_ceiling_reached'
        | 'declined_too_often'
        | 'too_many_open'
        | 'unavailable';
    };

export const MAGIC_TOP_UPS: ReadonlyMap<number, MagicTopUp> = new Map([
  [microsOf('402.01'), failed('card_declined', 'Your card was declined.')],
  [microsOf('402.02'), failed('authentication_required', 'Your bank asks for confirmation.')],
  [microsOf('402.03'), failed('card_expired', 'Your card has expired.')],
  [microsOf('402.04'), failed('no_saved_card', 'No card is saved yet.')],
  [microsOf('402.05'), { kind: 'declined_too_often' }],
  [microsOf('403.01'), { kind: 'consent_required' }],
  [microsOf('403.02'), { kind: 'consent_ceiling_reached' }],
  [microsOf('429.01'), { kind: 'too_many_open' }],
  [microsOf('503.01'), { kind: 'unavailable' }],
]);

function failed(code: ErrorCode, message: string): MagicTopUp {
  return { kind: 'failed', failure: { code, message } };
}

function microsOf(dollars: string): number {
  const micros = microsOfDollars(dollars);
  if (micros === undefined) throw new RangeError(`${dollars} is not an amount`);
  return micros;
}
