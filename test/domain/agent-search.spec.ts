/** The queries of a search: weights that add up, few queries of bounded cost, and the intent. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import {
  intentOf,
  queriesOf,
  termsOf,
  UNKNOWN_INTENT,
  type WordMatch,
} from '../../src/domain/agent-search.ts';

/** A word that this many agents use. */
const used = (word: string, agents: number): WordMatch => ({
  asked: word,
  word,
  agents,
  likeness: 1,
});
const unused = (asked: string): WordMatch => ({ asked, word: null, agents: 0, likeness: 0 });
const queries = (...matches: WordMatch[]) => queriesOf(termsOf(matches));

const anyMatches = fc
  .uniqueArray(fc.tuple(fc.stringMatching(/^[a-z]{1,8}$/), fc.nat(100_000)), {
    selector: ([word]) => word,
    maxLength: 32,
  })
  .map((words) => words.map(([word, agents]) => (agents ? used(word, agents) : unused(word))));

describe('terms', () => {
  it('weigh more the fewer agents use the word, and one in total', () => {
    fc.assert(
      fc.property(anyMatches, (matches) => {
        const terms = termsOf(matches);
        const sum = terms.reduce((total, { weight }) => total + weight, 0);
        assert.ok(terms.length === 0 || Math.abs(sum - 1) < 1e-9);
        for (const a of terms) {
          for (const b of terms) if (a.agents > b.agents) assert.ok(a.weight <= b.weight);
        }
      }),
    );
  });

  it('include all words that a query word may mean, and count their agents together', () => {
    const [term] = termsOf([
      { asked: 'translat', word: 'translat', agents: 3, likeness: 1 },
      { asked: 'translat', word: 'transit', agents: 2, likeness: 0.5 },
    ]);
    assert.deepEqual(term, {
      words: [
        { word: 'translat', likeness: 1 },
        { word: 'transit', likeness: 0.5 },
      ],
      agents: 5,
      weight: 1,
    });
  });
});

describe('queries', () => {
  it('require all words, then all but one, then two, then any', () => {
    assert.deepEqual(queries(used('d', 4), used('a', 1), used('c', 3), used('b', 2)), [
      "('a') & ('b') & ('c') & ('d')",
      "(('a') & ('b') & ('c') | ('a') & ('b') & ('d') | ('a') & ('c') & ('d') | ('b') & ('c') & ('d'))",
      "(('a') & ('b') | ('a') & ('c') | ('a') & ('d') | ('b') & ('c') | ('b') & ('d') | ('c') & ('d'))",
      "(('a') | ('b') | ('c') | ('d'))",
    ]);
  });

  it('are sent once where two of those are the same', () => {
    assert.deepEqual(queries(used('a', 1)), ["('a')"]);
    assert.deepEqual(queries(used('a', 1), used('b', 2)), ["('a') & ('b')", "(('a') | ('b'))"]);
  });

  it('ignore words that no agent uses', () => {
    assert.deepEqual(queries(), []);
    assert.deepEqual(queries(unused('x'), unused('y')), []);
    assert.deepEqual(queries(unused('x'), used('a', 1)), ["('a')"]);
  });

  it('omit the most common words when a query would read too much', () => {
    assert.deepEqual(queries(used('a', 9_000), used('agent', 90_000), used('b', 9_000)), [
      "('a') & ('b') & ('agent')",
      "(('a'))",
    ]);
  });

  it('number at most four, of at most six words each, for any input', () => {
    fc.assert(
      fc.property(anyMatches, (matches) => {
        const texts = queriesOf(termsOf(matches));
        assert.ok(texts.length <= 4);
        for (const text of texts) {
          assert.ok(new Set(text.match(/'\w+'/g)).size <= 6);
          assert.match(text, /^[('a-z|& )]+$/);
        }
      }),
    );
  });
});

describe('the intent', () => {
  const terms = termsOf([used('find', 10), used('otter', 2)]);

  it('is the offer with the most query words and the fewest others', () => {
    const offers = [
      { name: 'otter', stems: ['otter'] },
      { name: 'find_otter_now', stems: ['find', 'otter', 'now'] },
      { name: 'find_otter', stems: ['find', 'otter'] },
      { name: 'find', stems: ['find'] },
    ];
    assert.deepEqual(intentOf(terms, offers), { name: 'find_otter', confidence: 1 });
  });

  it('is the first of those that fit equally well', () => {
    const offers = ['a', 'b'].map((name) => ({ name, stems: ['otter'] }));
    assert.equal(intentOf(terms, offers).name, 'a');
  });

  it('is unknown without an offer, without a word in common, or without words at all', () => {
    assert.deepEqual(intentOf(terms, []), UNKNOWN_INTENT);
    assert.deepEqual(intentOf(terms, [{ name: 'walrus', stems: ['walrus'] }]), UNKNOWN_INTENT);
    assert.deepEqual(intentOf(terms, [{ name: '???', stems: [] }]), UNKNOWN_INTENT);
    assert.deepEqual(intentOf([], [{ name: 'otter', stems: ['otter'] }]), UNKNOWN_INTENT);
  });

  it('has a certainty from 0 to 1', () => {
    fc.assert(
      fc.property(anyMatches, fc.array(fc.stringMatching(/^[a-z]{1,2}$/)), (matches, stems) => {
        const { confidence } = intentOf(termsOf(matches), [{ name: 'x', stems }]);
        assert.ok(confidence >= 0 && confidence <= 1 + 1e-9);
      }),
    );
  });
});
