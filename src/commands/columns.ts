/** Rows as columns under their names, for people. Scripts use --json. */
export function columns(rows: readonly Readonly<Record<string, string | number | null>>[]): string {
  const [first] = rows;
  if (!first) return '';
  const names = Object.keys(first);
  const lines = [names, ...rows.map((row) => names.map((name) => String(row[name] ?? '-')))];
  const widths = names.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)));
  const text = (line: readonly string[]) =>
    line
      .map((each, at) => each.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd();
  return lines.map((line) => `${text(line)}\n`).join('');
}
