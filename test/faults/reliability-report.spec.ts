/** The document of the long runs keeps one section for each. */
import assert from 'node:assert/strict';
import { table, withSection } from './reliability-report.ts';

describe('the report of a long run', () => {
  it('replaces its earlier section and leaves the others as they are', () => {
    const first = withSection('# Reliability\n\nWords.\n', 'Lines', '## Lines\n\nold\n');
    const both = withSection(first, 'Soak', '## Soak\n\nflat\n');
    assert.equal(
      withSection(both, 'Lines', '## Lines\n\nnew\n'),
      '# Reliability\n\nWords.\n\n## Lines\n\nnew\n\n## Soak\n\nflat\n',
    );
  });

  it('writes tables of Markdown', () => {
    assert.equal(
      table(['fault', 'ms'], [['cut', 5]]),
      '| fault | ms |\n| --- | --- |\n| cut | 5 |',
    );
  });
});
