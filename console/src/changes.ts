/**
 * The members that differ. A form sends only these: another tab may have changed the others since the form was opened.
 */
export function changesOf<T extends object>(opened: T, now: T): Partial<T> {
  const before = new Map<string, unknown>(Object.entries(opened));
  const changed = Object.entries(now).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(before.get(name)),
  );
  return Object.fromEntries(changed) as Partial<T>;
}
