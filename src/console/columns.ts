/** Maps camelCase to snake_case: `lastRequest` is in the column `last_request`. */
export function columns<Name extends string>(...names: readonly Name[]): Record<Name, string> {
  const entries = names.map((name) => [
    name,
    name.replaceAll(/[A-Z]/g, (c) => `_${c.toLowerCase()}`),
  ]);
  return Object.fromEntries(entries) as Record<Name, string>;
}
