/** What a check of doctor finds: the rows that violate it. */
export interface Offender {
  /** The row that violates the check, as kind and UUID. */
  readonly subject: string;
  readonly detail: string;
}

export interface Finding extends Offender {
  readonly part: string;
  /** The violated invariant. */
  readonly check: string;
  /** The number of violations; the first ones are findings. */
  readonly offenders: number;
}

/** Per check: enough to see the problem. */
export const OFFENDERS_MAX = 20;

/** What a check that looks at more than rows found. */
export function findingsOf(part: string, check: string, found: readonly Offender[]): Finding[] {
  return firstOf(found).map((each) => ({ part, check, ...each }));
}

/** The first violations of a check, and their total number. */
export function firstOf(found: readonly Offender[]): Omit<Finding, 'part' | 'check'>[] {
  return found
    .slice(0, OFFENDERS_MAX)
    .map((offender) => ({ ...offender, offenders: found.length }));
}
