/** The paid work of the example's tools. */
import assert from 'node:assert/strict';
import { countWords, summarize } from '../../examples/mcp-tool-server/text.ts';

describe('example: text', () => {
  it('counts words, sentences and the characters that a reader sees', () => {
    assert.deepEqual(countWords('Héllo, wörld! 👩‍👩‍👧 2 x 3.'), {
      words: 5,
      sentences: 2,
      characters: 22,
    });
    assert.deepEqual(countWords('   '), { words: 0, sentences: 0, characters: 3 });
  });

  it('keeps the sentences with the most common words, in their order', () => {
    const text = `Otters swim in rivers. The weather was fine yesterday.
      Rivers hold many otters. My aunt bought curtains.`;
    assert.equal(summarize(text, 2), 'Otters swim in rivers. Rivers hold many otters.');
  });

  it('returns a text of few sentences unchanged', () => {
    assert.equal(summarize('One sentence\nonly.', 3), 'One sentence only.');
  });
});
