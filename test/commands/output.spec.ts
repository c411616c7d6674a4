/** What commands print for people. */
import assert from 'node:assert/strict';
import { columns, table } from '../../src/commands/output.ts';

describe('the output of a command for people', () => {
  const values = {
    id: 'evt_1',
    body: '\u001B]0;all is well\u0007\nfarebox: done\u202E',
    none: null,
  };

  it('shows control characters of others instead of sending them to the terminal', () => {
    const shown = String.raw`\u001b]0;all is well\u0007\u000afarebox: done\u202e`;
    assert.equal(table(values), `id    evt_1\nbody  ${shown}\nnone  -\n`);
    const width = shown.length;
    assert.equal(columns([values]), `id     ${'body'.padEnd(width)}  none\nevt_1  ${shown}  -\n`);
  });

  it('writes amounts and counts with commas, exactly', () => {
    assert.equal(table({ limit: 1_234_567.5 }), 'limit  1,234,567.5\n');
    assert.equal(columns([{ used: 1_234_567.000001 }]), 'used\n1,234,567.000001\n');
  });

  it('leaves every other text as it is', () => {
    const name = 'Zoë 👩‍🚀 שלום';
    assert.equal(table({ name, n: 1.5, yes: true }), `name  ${name}\nn     1.5\nyes   true\n`);
  });
});
