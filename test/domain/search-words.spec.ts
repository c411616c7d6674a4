/** Words of text: the same for a query and for a registered agent, in any spelling. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { searchWords, swappedSpellings } from '../../src/domain/search-words.ts';

describe('searchWords', () => {
  for (const [text, words] of [
    ['sendEmail', 'send email'],
    ['send_email', 'send email'],
    ['email.send/v2', 'email send v2'],
    ['HTTPServer', 'http server'],
    ['parseXMLDocument', 'parse xml document'],
    ['gpt4Turbo', 'gpt4 turbo'],
    ['MCP', 'mcp'],
    ['A2A', 'a2a'],
    ['A2AServer', 'a2a server'],
    ['S3', 's3'],
    ['Résumé-Parser', 'resume parser'],
    ['ﬁnance ①', 'finance 1'],
    ['  O’Brien\n&  sons ', 'o brien sons'],
    ['Погода в Москве', 'погода в москве'],
    ['', ''],
    ['?!', ''],
  ] as const) {
    it(`makes "${words}" of ${JSON.stringify(text)}`, () => assert.equal(searchWords(text), words));
  }

  it('returns only letters, digits and single spaces, and leaves its own output unchanged', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const words = searchWords(text);
        assert.match(words, /^([\p{L}\p{N}]+( [\p{L}\p{N}]+)*)?$/u);
        assert.equal(searchWords(words), words);
      }),
    );
  });
});

describe('swappedSpellings', () => {
  it('swaps each pair of neighbors, except equal ones', () => {
    assert.deepEqual(swappedSpellings('wheel'), ['hweel', 'wehel', 'whele']);
    assert.deepEqual(swappedSpellings('a'), []);
    assert.deepEqual(swappedSpellings(''), []);
  });

  it('is its own inverse', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z]{2,40}$/), (word) => {
        for (const swapped of swappedSpellings(word)) {
          assert.ok(swappedSpellings(swapped).includes(word));
        }
      }),
    );
  });

  it('leaves texts alone that are too long for a word', () => {
    assert.deepEqual(swappedSpellings('ab'.repeat(21)), []);
  });
});
