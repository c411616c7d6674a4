/** The work of the paid tools: counts words and picks the most informative sentences. Pure functions. */
export interface WordCount {
  readonly words: number;
  readonly sentences: number;
  readonly characters: number;
}

const WORDS = new Intl.Segmenter('en', { granularity: 'word' });
const SENTENCES = new Intl.Segmenter('en', { granularity: 'sentence' });
const CHARACTERS = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Shorter words ("the", "of") are in every sentence and carry no weight. */
const TELLING_WORD_LENGTH = 4;

export function countWords(text: string): WordCount {
  return {
    words: wordsOf(text).length,
    sentences: sentencesOf(text).length,
    characters: [...CHARACTERS.segment(text)].length,
  };
}

/** At most `count` sentences, those with the most common words of the text, in their original order. */
export function summarize(text: string, count: number): string {
  const frequency = new Map<string, number>();
  for (const word of tellingWordsOf(text)) frequency.set(word, (frequency.get(word) ?? 0) + 1);

  const ranked = sentencesOf(text).map((sentence, position) => {
    const words = tellingWordsOf(sentence);
    const total = words.reduce((sum, word) => sum + (frequency.get(word) ?? 0), 0);
    // The average, not the sum: a long sentence is not more important.
    return { sentence, position, score: total / Math.max(1, words.length) };
  });
  return ranked
    .toSorted((a, b) => b.score - a.score)
    .slice(0, count)
    .toSorted((a, b) => a.position - b.position)
    .map(({ sentence }) => sentence)
    .join(' ');
}

function wordsOf(text: string): string[] {
  return [...WORDS.segment(text)]
    .filter(({ isWordLike }) => isWordLike)
    .map(({ segment }) => segment.toLowerCase());
}

function tellingWordsOf(text: string): string[] {
  return wordsOf(text).filter((word) => word.length >= TELLING_WORD_LENGTH);
}

function sentencesOf(text: string): string[] {
  // A line break within a paragraph does not end a sentence.
  return [...SENTENCES.segment(text.replace(/\s+/g, ' '))]
    .map(({ segment }) => segment.trim())
    .filter((sentence) => sentence !== '');
}
