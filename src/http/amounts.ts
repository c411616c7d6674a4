/** Amounts of money that requests carry: exact and within bounds, or refused by field and by value. */
import { ApiError } from '../domain/errors.ts';
import { isChargeable, microsOfDollars, type Micros } from '../domain/money.ts';

export interface AmountRule {
  readonly accepts: (amount: Micros) => boolean;
  /** What an amount must be: ends the sentence of a refusal. */
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

const SHOWN_MAX = 40;

/** As it was sent; JSON has no way to write a number that was too large to be one. */
function shown(sent: unknown): string {
  const text = typeof sent === 'number' ? String(sent) : JSON.stringify(sent);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}...` : text;
}
