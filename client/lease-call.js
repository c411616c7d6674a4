/** One call under a lease, checked before it is decided: what the service refuses would never be paid for. */
import { createError } from './errors.js';
import { checkMetadata } from './metadata.js';
import { amountToSend, exactMicrosOf } from './money.js';

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
