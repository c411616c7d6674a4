/** The option `--limit` of commands that list. */
import { InvalidArgumentError } from 'commander';

export const LIMIT_MAX = 1_000;

export function limitOf(text: string): number {
  const limit = Number(text);
  if (/^\d+$/.test(text) && limit >= 1 && limit <= LIMIT_MAX) return limit;
  throw new InvalidArgumentError(`It must be a number from 1 to ${LIMIT_MAX}.`);
}
