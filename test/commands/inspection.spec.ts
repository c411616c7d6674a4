/** The step that a long command shows while it works. */
import assert from 'node:assert/strict';
import { endProgress, showProgress } from '../../src/commands/inspection.ts';

const CLEARED = '\r\u001B[2K';

describe('the progress of a command', () => {
  it('is one line on a terminal, which each step replaces and the end clears', () => {
    const written: string[] = [];
    const out = { isTTY: true, write: (text: string) => written.push(text) };
    showProgress('charges', out);
    showProgress('earnings', out);
    endProgress(out);
    assert.deepEqual(written, [`${CLEARED}charges ...`, `${CLEARED}earnings ...`, CLEARED]);
  });

  it('stays one line on a narrow terminal', () => {
    const written: string[] = [];
    const out = { isTTY: true, columns: 10, write: (text: string) => written.push(text) };
    showProgress('charges follow each other', out);
    assert.deepEqual(written, [`${CLEARED}charges f`]);
  });

  it('is not written into a pipe', () => {
    const written: string[] = [];
    const out = { write: (text: string) => written.push(text) };
    showProgress('charges', out);
    endProgress(out);
    assert.deepEqual(written, []);
  });
});
