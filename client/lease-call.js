/**
 * One call under a lease, checked before it is decided: what the service refuses would never be paid for. Also the
 * errors of calls for which there is no money.
 */
import { createError } from './errors.js';
import { checkMetadata } from './metadata.js';
import { dollarsOf } from './lease-slice.js';
import { amountToSend, exactMicrosOf, formatDollarNumber } from './money.js';

/** The amount of the call, which may be less than its price. */
export function priceOf(tool, amount, price) {
  if (price === undefined) {
    throw createError('unknown_tool', `The lease has no tool "${tool}".`, { param: 'tool' });
  }
  const micros = exactMicrosOf(amountToSend(amount));
  if (micros > 0 && micros <= price) return micros;
  const message =
    'The amount must be more than $0, with at most six decimals, and at most the price of the tool in the lease.';
  throw createError('invalid_amount', message, { param: 'amount' });
}

const NO_METADATA = { copy: undefined, chars: 0 };

/** Throws a TypeError for what JSON cannot express, and a FareboxError for what the service refuses. */
export function copyOf(metadata) {
  if (metadata === undefined) return NO_METADATA;
  const text = JSON.stringify(metadata);
  if (text === undefined) throw new TypeError('metadata must be an object.');
  const copy = JSON.parse(text);
  checkMetadata(copy);
  return { copy, chars: text.length };
}

/** The call is not charged, even if `refusal` leaves unknown whether the next lease was granted. */
export function usedUp(message, refusal) {
  if (!refusal) return createError('lease_used_up', `${message}.`);
  const facts = { ...refusal, outcome: 'not_charged', idempotencyKey: undefined };
  const why = refusal.outcome === 'unknown' ? 'Farebox gave no response.' : refusal.message;
  return createError(refusal.code, `${message}: ${why}`, facts, refusal);
}

/** No lease can cover it. */
export function tooDear(micros, amount) {
  const [price, most] = [dollarsOf(micros), Number(amountToSend(amount))].map(formatDollarNumber);
  const message = `A call of ${price} is more than a lease has: the \`amount\` of farebox.lease() is ${most}.`;
  return createError('exceeds_lease', message, { param: 'amount' });
}
