/** Amounts of money in requests: exact and within bounds, or refused with the field and the value. */
import { ApiError } from '../domain/errors.ts';
import { isChargeable, LARGEST_AMOUNT, microsOfDollars, type Micros } from '../domain/money.ts';

export interface AmountRule {
  readonly accepts: (amount: Micros) => boolean;
  /** The end of a refusal's sentence "It must be ...". */
  readonly says: string;
}

export const CHARGEABLE: AmountRule = {
  accepts: isChargeable,
  says: 'more than $0 and at most $1,000,000, with at most six decimals',
};

export function amountOf(param: string, sent: number | string, rule: AmountRule): Micros {
  const amount = microsOfDollars(sent);
  if (amount !== undefined && rule.accepts(amount)) return amount;
  throw invalidAmount(param, sent, rule.says);
}

export function invalidAmount(param: string, sent: unknown, mustBe: string): ApiError {
  return new ApiError('invalid_amount', `${param} is ${shown(sent)}. It must be ${mustBe}.`, {
    param,
  });
}

export function balanceTooLarge(): ApiError {
  return new ApiError(
    'invalid_amount',
    `The balance would exceed the maximum of ${LARGEST_AMOUNT}.`,
    {
      param: 'amount',
    },
  );
}

const SHOWN_MAX = 40;

/**
 * The value as sent. JSON cannot represent a number that overflowed to infinity, and JSON.stringify throws for arrays
 * and objects that are nested too deeply.
 */
function shown(sent: unknown): string {
  if (Array.isArray(sent)) return 'an array';
  if (typeof sent === 'object' && sent !== null) return 'an object';
  const text = typeof sent === 'number' ? String(sent) : JSON.stringify(sent);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}...` : text;
}
