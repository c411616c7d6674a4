/**
 * Text inside the details of a workflow, which the Temporal UI shows as Markdown, with formulas between
 * dollar signs.
 */

/** Shows an error message, an amount or any other text as it is, on one line. */
export function escaped(text: string): string {
  return text.replaceAll(/[\\`*_[\]<>~&|$]/g, String.raw`\$&`).replaceAll(/\s*\n\s*/g, ' ');
}
