/** Pieces that the wire's shapes are made of. */
import { Type } from 'typebox';

export const TOOL_NAME_MAX = 100;

/** Dollars as a JSON number, as every answer has them. */
export const Dollars = (description: string) => Type.Number({ description });

/** Dollars in a request; exactness and bounds are checked where they are read (http/amounts.ts). */
export const DollarsAsked = (description: string) =>
  Type.Union([Type.Number(), Type.String()], {
    description: `${description}. A number, or a decimal string such as "0.02"; at most six decimals`,
  });

export const Timestamp = Type.String({ format: 'date-time', description: 'ISO 8601, UTC' });

/**
 * Any printable text with something to be seen in it: no control characters, separators of lines, halves
 * of a surrogate pair, or marks of writing direction, which would reorder what stands beside it. Joiners
 * stay: emoji and some scripts are written with them.
 */
export const PrintableText = (maxLength: number) =>
  Type.String({
    pattern:
      '^(?=.*[^\\s\\p{Default_Ignorable_Code_Point}])' +
      `[^\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Bidi_Control}]{1,${maxLength}}$`,
    description: `Printable text of 1 to ${maxLength} characters`,
  });

export const ToolName = PrintableText(TOOL_NAME_MAX);

/** Text that Postgres can store: no NUL, no half of a surrogate pair. */
export const PlainText = (maxLength: number) =>
  Type.String({ maxLength, pattern: '^[^\\u0000\\p{Cs}]*$' });

export const PageMarks = {
  hasMore: Type.Boolean(),
  nextCursor: Type.Union([Type.String(), Type.Null()], {
    description: 'Give it as `cursor` for the next page; null on the last one',
  }),
};
