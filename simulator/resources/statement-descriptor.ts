/** What the cardholder's statement shows for a payment: the prefix of the account, and the suffix of the payment. */
import { invalidParam } from '../http/errors.ts';
import type { Params } from '../http/params.ts';

const PREFIX = 'FAREBOX';
/** Stripe truncates what is longer. */
const LENGTH_MAX = 22;

export function suffixIn(params: Params | undefined): string | null {
  const name = 'statement_descriptor_suffix';
  const suffix = params?.string(name);
  if (params === undefined || suffix === undefined) return null;
  if (suffix.length > LENGTH_MAX) {
    throw invalidParam(params.pathOf(name), `Invalid string: at most ${LENGTH_MAX} characters.`);
  }
  if (!/[a-z]/i.test(suffix) || /[<>\\'"*]/.test(suffix)) {
    throw invalidParam(
      params.pathOf(name),
      `The ${name} must contain at least one letter and none of <, >, \\, ', ", *.`,
    );
  }
  return suffix;
}

export function descriptorOf(suffix: string | null): string {
  return suffix === null ? PREFIX : `${PREFIX}* ${suffix}`.slice(0, LENGTH_MAX);
}
