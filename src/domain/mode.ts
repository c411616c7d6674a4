/**
 * Test mode: play money in ledgers of its own. An account's test keys belong to its test account, which has a consumer
 * and a developer like any other; only its ledger tells it apart, so nothing is read to know the mode of a key.
 */
export const MODES = ['live', 'test'] as const;
export type Mode = (typeof MODES)[number];

/** Live accounts have lower ledgers: `LEDGERS` is at most 1,024. */
export const TEST_LEDGER_MIN = 2_048;

export interface InLedger {
  readonly ledger: number;
}

export function isTest({ ledger }: InLedger): boolean {
  return ledger >= TEST_LEDGER_MIN;
}

/** Only keys of one mode work together. */
export function isSameMode(one: InLedger, other: InLedger): boolean {
  return isTest(one) === isTest(other);
}

export function modeOf(owner: InLedger): Mode {
  return isTest(owner) ? 'test' : 'live';
}
