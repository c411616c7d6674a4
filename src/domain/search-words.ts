/**
 * Text as searches compare it: plain words in lower case, of a query as of what is registered. So an
 * identifier (`sendEmail`, `send_email`, `email.send`) is found by the words in it.
 */

/** `'Résumé-Parser v2'` to `'resume parser v2'`: letters, digits and single spaces. */
export function searchWords(text: string): string {
  return text
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/(\p{Ll}|\d)(?=\p{Lu})|(\p{Lu})(?=\p{Lu}\p{Ll})/gu, '$1$2 ')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}

/** Longer ones are no words that somebody types. */
const TYPED_MAX = 40;

/** The word with two neighbouring letters changed over, each way: a typing error that changes most of it. */
export function swappedSpellings(word: string): string[] {
  if (word.length > TYPED_MAX) return [];
  const letters = Array.from(word);
  return letters.slice(1).flatMap((letter, index) => {
    const swapped = letters.with(index, letter).with(index + 1, letters[index] ?? '');
    return letter === letters[index] ? [] : [swapped.join('')];
  });
}
