/** Text of others in the details of workflows. */
import assert from 'node:assert/strict';
import { escaped } from '../../workflows/markdown.ts';

describe('text in the details of a workflow', () => {
  it('is shown as it is, without links, emphasis, HTML or formulas', () => {
    assert.equal(
      escaped('<b>$26.00</b> expected, *$25.00* found: [pay](https://example.com) `x_y`'),
      '\\<b\\>\\$26.00\\</b\\> expected, \\*\\$25.00\\* found: \\[pay\\](https://example.com) \\`x\\_y\\`',
    );
  });

  it('is one line, so that it ends neither a quote nor a paragraph', () => {
    assert.equal(escaped('refused\n\n# Retry\r\nnow'), 'refused # Retry now');
  });
});
