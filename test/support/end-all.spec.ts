/** A failed check at the end of a test file must not leave servers running. */
import assert from 'node:assert/strict';
import { endAll } from './end-all.ts';

const fail = (what: string) => () => {
  throw new Error(what);
};

describe('the end of a test file', () => {
  it('ends what was started, in order, and throws what a check found', async () => {
    const ended: string[] = [];
    const wrong = new Error('the books are wrong');
    await assert.rejects(
      endAll(
        () => Promise.reject(wrong),
        async () => ended.push('api'),
        () => ended.push('database'),
      ),
      wrong,
    );
    assert.deepEqual(ended, ['api', 'database']);
  });

  it('throws every failure', async () => {
    await assert.rejects(endAll(fail('first'), fail('second')), /first\n.*second/);
  });

  it('throws nothing if every step succeeds', () => endAll(() => {}));
});
