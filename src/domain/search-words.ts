/**
 * Text as searches compare it: plain words in lower case, of a query as of what is registered. So an
 * identifier (`sendEmail`, `send_email`, `email.send`) is found by the words in it.
 */

/** `'Résumé-Parser v2'` to `'resume parser v2'`. */
export function searchWords(text: string): string {
  return text
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/(\p{Ll}|\d)(?=\p{Lu})|(\p{Lu})(?=\p{Lu}\p{Ll})/gu, '$1$2 ')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}
