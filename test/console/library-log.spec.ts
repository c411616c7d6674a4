/** Every report of the sign-in library is logged, also one that is not a text. */
import assert from 'node:assert/strict';
import { libraryLog } from '../../src/console/library-log.ts';

describe('the log of the sign-in library', () => {
  it('has a text and its cause', () => {
    const cause = new Error('away');
    const [line] = logged('x'.repeat(300), cause);
    assert.deepEqual(line, [{ part: 'console', err: cause }, 'x'.repeat(200)]);
  });

  it('has an error that is reported without a text', () => {
    const error = new Error('away');
    const [line] = logged(error);
    assert.deepEqual(line, [{ part: 'console', err: error }, 'a sign-in endpoint failed']);
  });
});

function logged(...report: [text: unknown, cause?: unknown]): unknown[] {
  const lines: unknown[] = [];
  libraryLog({ warn: (...line: unknown[]) => void lines.push(line) })('error', ...report);
  return lines;
}
