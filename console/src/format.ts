/** Formats money and times. Amounts show all of their decimals: nothing is rounded. */
import { dollarsOf } from '../../src/domain/money.ts';
import { topUpMaxOf } from '../../src/domain/top-up.ts';

const DECIMALS_MAX = 6;
const UNIT_DECIMALS_MAX = 12;

/** How many decimals an amount needs, at least two. */
export function decimalsOf(dollars: number): number {
  const [, fraction = ''] = dollars.toFixed(DECIMALS_MAX).split('.');
  return Math.max(2, fraction.replace(/0+$/, '').length);
}

/** `$1,234.50`, `$0.000125`, `−$5.00`; `decimals` pads the amount to line up with its column. */
export function usd(dollars: number, decimals = decimalsOf(dollars)): string {
  const text = Math.abs(dollars).toLocaleString('en-US', {
    minimumFractionDigits: decimals,
    maximumFractionDigits: DECIMALS_MAX,
  });
  return `${dollars < 0 ? '\u2212' : ''}$${text}`;
}

/** The price of a unit on a rate card: `$0.0000025`. */
export function unitPrice(dollars: number): string {
  const decimals = { minimumFractionDigits: 2, maximumFractionDigits: UNIT_DECIMALS_MAX };
  return `$${dollars.toLocaleString('en-US', decimals)}`;
}

/** The same to be edited, without an exponent: `0.0000025`. */
export function decimalText(dollars: number): string {
  return dollars.toFixed(UNIT_DECIMALS_MAX).replace(/\.?0+$/, '');
}

/** In dollars: the most that a card can pay, or what leaves room for the tax. */
export function payableMaxOf(isTaxed: boolean): number {
  return dollarsOf(topUpMaxOf(isTaxed));
}
const PAYABLE_MAX = payableMaxOf(false);

/** Whether this is typed dollars in whole cents, from `min` to `max`. */
export function isPayable(text: string, min: number, max = PAYABLE_MAX): boolean {
  const dollars = Number(text);
  return /^\d+(\.\d{1,2})?$/.test(text.trim()) && dollars >= min && dollars <= max;
}

/** What to enter, when `isPayable` is false. */
export function payableHint(min: number, max = PAYABLE_MAX): string {
  return `Enter ${usd(min)} to ${usd(max)}, in whole cents.`;
}

/** How many decimals a column shows, so that its decimal points line up. */
export function decimalsOfAll(amounts: readonly number[]): number {
  return Math.max(2, ...amounts.map(decimalsOf));
}

export function localTime(iso: string): string {
  return new Date(iso).toLocaleString('en-US', {
    month: 'short',
    day: 'numeric',
    year: isThisYear(iso) ? undefined : 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  });
}

export function localDay(iso: string): string {
  return new Date(iso).toLocaleDateString('en-US', {
    month: 'short',
    day: 'numeric',
    year: 'numeric',
  });
}

/** A UTC day with its year, such as `Nov 21, 2026`. */
export function utcDate(iso: string): string {
  return new Date(iso).toLocaleDateString('en-US', {
    month: 'short',
    day: 'numeric',
    year: 'numeric',
    timeZone: 'UTC',
  });
}

/** A UTC day, such as `Nov 21`. */
export function utcDay(iso: string): string {
  return new Date(iso).toLocaleDateString('en-US', {
    month: 'short',
    day: 'numeric',
    timeZone: 'UTC',
  });
}

/**
 * `3 minutes ago`. From 24 hours on, it counts calendar days in the browser's time zone, in which times are
 * shown too.
 */
export function ago(iso: string, now = Date.now()): string {
  const seconds = Math.round((Date.parse(iso) - now) / 1_000);
  const format = new Intl.RelativeTimeFormat('en-US', { numeric: 'auto' });
  const days = localDayNumber(Date.parse(iso)) - localDayNumber(now);
  // The day on which clocks are set back has 25 hours.
  if (Math.abs(seconds) >= 86_400 && days !== 0) return format.format(days, 'day');
  if (Math.abs(seconds) >= 3_600) return format.format(Math.trunc(seconds / 3_600), 'hour');
  if (Math.abs(seconds) >= 60) return format.format(Math.trunc(seconds / 60), 'minute');
  return 'just now';
}

function localDayNumber(ms: number): number {
  const time = new Date(ms);
  return Date.UTC(time.getFullYear(), time.getMonth(), time.getDate()) / 86_400_000;
}

/** `42 s`, `17 min`, `3 h`, `12 days`. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3_600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 2 * 86_400) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

/** How long a balance lasts if each week costs as much as the last one: `about 12 days`. */
export function lasts(dollars: number, weekDollars: number): string {
  const days = Math.floor((dollars / weekDollars) * 7);
  if (days > 365) return 'more than a year';
  return days < 1 ? 'less than a day' : `about ${plural(days, 'day')}`;
}

export function plural(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`;
}

function isThisYear(iso: string): boolean {
  return new Date(iso).getFullYear() === new Date().getFullYear();
}

/** The start of the UTC day, `days` days ago. */
export function daysAgo(days: number): string {
  const dayMs = 86_400_000;
  return new Date(Math.floor(Date.now() / dayMs - days) * dayMs).toISOString();
}

export const statusText: Readonly<Record<string, string>> = {
  pending: 'Pending',
  completed: 'Completed',
  expired: 'Expired',
  failed: 'Failed',
  partially_refunded: 'Partially refunded',
  refunded: 'Refunded',
  disputed: 'Disputed',
  charged_back: 'Charged back',
  open: 'Open',
  captured: 'Captured',
  released: 'Released',
};

/** Why a balance changed. A newer API may have a reason that this page does not know. */
export function movementText(kind: string): string {
  return MOVEMENTS[kind] ?? kind.replaceAll('_', ' ');
}

const MOVEMENTS: Readonly<Record<string, string>> = {
  top_up: 'Top-up',
  adjustment: 'Adjustment',
  refund: 'Refund of a top-up',
  refund_returned: 'Refund failed, credited again',
  // One dispute of spent money is taken in parts, whenever there is a balance.
  dispute: 'Taken for a lost dispute',
  dispute_returned: 'Dispute won, credited again',
  charge_refund: 'Refund of a charge',
};

/** How a top-up is paid. */
export function paymentText({ method, automatic }: Payment): string {
  return automatic ? 'Automatic, saved card' : METHODS[method];
}

interface Payment {
  readonly method: keyof typeof METHODS;
  readonly automatic: boolean;
}

const METHODS = {
  checkout: 'Checkout',
  direct: 'Saved card',
  manual: 'Added manually',
  test: 'Play money',
} as const;
