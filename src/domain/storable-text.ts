/** Whether PostgreSQL stores a text: one without NUL and without unpaired surrogates. */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}
