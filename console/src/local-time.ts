/** Instants as fields of the type `datetime-local` have them: to the minute, in the browser's time zone; empty: none. */

export function localOf(iso: string | null | undefined): string {
  if (iso === null || iso === undefined) return '';
  const time = new Date(iso);
  // Not with `setMinutes`: it skips an hour when the local clock does.
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString();
  // The year 10000, which the field cannot show, begins earlier in the east: '+010000-...'.
  return local.startsWith('+') ? '' : local.slice(0, 16);
}

export function instantOf(local: string): string | null {
  return local === '' ? null : new Date(local).toISOString();
}
