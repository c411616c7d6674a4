/** The end of a test file: its last checks, and the ends of what it started. */

/**
 * Runs each step, in order, even if an earlier one failed, and then throws what failed. Otherwise, a failed
 * check would leave servers running, and mocha would never end.
 */
export async function endAll(...steps: readonly (() => unknown)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 1) throw new AggregateError(failures, failures.map(String).join('\n'));
  if (failures.length === 1) throw failures[0];
}
