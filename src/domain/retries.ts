/** How soon workflows look again, at a step that failed or at books that differed, and how they say it. */

/**
 * The delay, a quarter shorter to a quarter longer: `chance` is from 0 to 1. So steps that failed together are not
 * repeated together.
 */
export function jittered(delayMs: number, chance: number): number {
  return delayMs * (0.75 + chance / 2);
}

/** The first interval of the workflows' retry policies, which the setting `STEP_RETRY_MS` replaces. */
export const STEP_RETRY_MS = 1_000;

/** A nudged workflow is done within seconds: reconciliation looks again after each of these pauses. */
export const REVIEW_AFTER_MS: readonly number[] = [2_000, 5_000, 15_000];

/** `24 hours`, `10 minutes`. */
export function inWords(ms: number): string {
  const minutes = ms / 60_000;
  return minutes % 60 === 0 ? plural(minutes / 60, 'hour') : plural(minutes, 'minute');
}

function plural(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
