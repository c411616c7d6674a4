/** What commands print: for people, or with `--json` for scripts. */
import { fstatSync, writeFile } from 'node:fs';

const STANDARD_OUTPUT = 1;

type Value = string | number | boolean | null;
type Values = Readonly<Record<string, Value>>;

/**
 * What would move the cursor, start a line or reorder text: a stranger's words, such as a response, must not
 * act on a terminal.
 */
const UNSHOWN = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** Numbers are amounts and counts: 1,234,567.5. */
function textOf(value: Value | undefined): string {
  if (typeof value === 'number') return value.toLocaleString('en-US', { maximumFractionDigits: 6 });
  return String(value ?? '-').replaceAll(
    UNSHOWN,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Rows as columns under their names. */
export function columns(rows: readonly Values[]): string {
  const [first] = rows;
  if (!first) return '';
  const names = Object.keys(first);
  const lines = [names, ...rows.map((row) => names.map((name) => textOf(row[name])))];
  const widths = names.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)));
  const text = (line: readonly string[]) =>
    line
      .map((each, at) => each.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd();
  return lines.map((line) => `${text(line)}\n`).join('');
}

/** A list for scripts: an object in each line. */
export function jsonLines(objects: readonly object[]): string {
  return objects.map((each) => `${JSON.stringify(each)}\n`).join('');
}

/** Aligned `name  value` lines. */
export function table(values: Values): string {
  const width = Math.max(...Object.keys(values).map((name) => name.length));
  return Object.entries(values)
    .map(([name, value]) => `${name.padEnd(width)}  ${textOf(value)}\n`)
    .join('');
}

/** One object, in a line of JSON or as a table. */
export function print(values: Values, json: boolean): void {
  process.stdout.write(objectText(values, json));
}

/**
 * Prints as `print` does. Resolves when the pipe or the file has everything; rejects when nobody reads the pipe, or the
 * disk is full.
 */
export function printAll(objects: readonly Values[], json: boolean): Promise<void> {
  const text = objects.map((values) => objectText(values, json)).join('');
  return new Promise((resolve, reject) => {
    const done = (error?: Error | null): void => (error ? reject(error) : resolve());
    // `process.stdout` writes to a file once, and does not notice that a full disk took only a part.
    if (fstatSync(STANDARD_OUTPUT).isFile()) writeFile(STANDARD_OUTPUT, text, done);
    else process.stdout.write(text, done);
  });
}

function objectText(values: Values, json: boolean): string {
  return json ? `${JSON.stringify(values)}\n` : table(values);
}
