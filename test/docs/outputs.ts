/** Compares what a block of the documentation printed with what the page says that it prints. */
import assert from 'node:assert/strict';

/** Differs from run to run: ids, times, receipts, and `expiresIn`, the seconds that are left. */
const ID = /^[a-z]+_[0-9a-f]{32}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** What the page calls something, and what it is called in this run. */
export type Names = Map<string, string>;

/** `...` in a text of the page stands for anything. An object may have more members than the page shows. */
export function assertJson(actual: unknown, shown: unknown, names: Names, path = 'it'): void {
  if (typeof shown === 'string') return assertText(actual, shown, names, path);
  if (Array.isArray(shown)) {
    assert.ok(Array.isArray(actual), `${path} is no list`);
    return shown.forEach((each, n) => assertJson(actual[n], each, names, `${path}[${n}]`));
  }
  if (path.endsWith('.expiresIn')) return assert.equal(typeof actual, typeof shown, path);
  if (typeof shown !== 'object' || shown === null) return assert.equal(actual, shown, path);
  assert.ok(typeof actual === 'object' && actual !== null, `${path} is no object`);
  for (const [name, value] of Object.entries(shown)) {
    assertJson((actual as Record<string, unknown>)[name], value, names, `${path}.${name}`);
  }
}

function assertText(actual: unknown, shown: string, names: Names, path: string): void {
  assert.equal(typeof actual, 'string', path);
  const text = String(actual);
  if (ID.test(shown)) {
    assert.match(text, ID, path);
    assert.equal(text.split('_')[0], shown.split('_')[0], path);
    // The last one that the page shows comes last.
    names.delete(shown);
    names.set(shown, text);
  } else if (TIME.test(shown)) assert.match(text, TIME, path);
  else assert.match(text, patternOf(shown), path);
}

/** Each line of the page is a line of the output, in the same order. */
export function assertLines(actual: string, shown: string): void {
  let rest = actual.split('\n').map((line) => line.trimEnd());
  for (const line of shown.trim().split('\n')) {
    const pattern = patternOf(line.trimEnd());
    const at = rest.findIndex((each) => pattern.test(each));
    assert.ok(at >= 0, `"${line}" is not in:\n${rest.join('\n')}`);
    rest = rest.slice(at + 1);
  }
}

function patternOf(shown: string): RegExp {
  return new RegExp(`^${shown.split('...').map(literally).join('.*')}$`);
}

function literally(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`);
}
