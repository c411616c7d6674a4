/**
 * How deep JSON of others may be nested: payloads for agents, and their answers. JSON.stringify and Postgres
 * go one call deeper with each level, and fail at some thousands.
 */

/** What the parsers of agents commonly accept: serde's accepts 128 levels by default. */
export const NESTING_MAX = 100;

/** Whether a parsed JSON value has more levels of arrays and objects than this. `{}` has one level. */
export function isNestedDeeperThan(levels: number, value: unknown): boolean {
  // Level by level: recursion would fail at the very depth that this has to find.
  let level = [value].filter(isNest);
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > levels) return true;
    level = level.flatMap((nest) => Object.values(nest).filter(isNest));
  }
  return false;
}

function isNest(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
