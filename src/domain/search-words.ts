/**
 * Text in the form that searches compare: plain words in lower case, for queries and registered text alike. So the
 * words of an identifier (`sendEmail`, `send_email`, `email.send`) find it.
 */

/** `'Résumé-Parser v2'` to `'resume parser v2'`: letters, digits and single spaces. */
export function searchWords(text: string): string {
  return text
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/(\p{Ll})(?=\p{Lu})|([\p{Lu}\d])(?=\p{Lu}\p{Ll})/gu, '$1$2 ')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}

/** Nobody types longer words. */
const TYPED_MAX = 40;

/** The spellings of a word with two neighboring letters swapped: a typo that changes most of its trigrams. */
export function swappedSpellings(word: string): string[] {
  if (word.length > TYPED_MAX) return [];
  const letters = Array.from(word);
  return letters.slice(1).flatMap((letter, index) => {
    const swapped = letters.with(index, letter).with(index + 1, letters[index] ?? '');
    return letter === letters[index] ? [] : [swapped.join('')];
  });
}
