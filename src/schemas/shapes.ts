/** Building blocks of the schemas. Every leaf has an example; the API reference builds its examples from these. */
import {
  Type,
  type Static,
  type TObjectOptions,
  type TProperties,
  type TSchema,
  type TStringOptions,
} from 'typebox';
import { idPattern, wireId, type IdKind } from '../domain/ids.ts';
import type * as money from '../domain/money.ts';
import { NESTING_MAX } from '../domain/nesting.ts';

export const TOOL_NAME_MAX = 100;

/** An object with exactly these members, for replies. */
export const Closed = <T extends TProperties>(properties: T, options: TObjectOptions = {}) =>
  Type.Object(properties, { ...options, additionalProperties: false });

/** Dollars as a JSON number, as in every reply. */
export const Dollars = (description: string, example = 0.05) =>
  Type.Unsafe<money.Dollars>(Type.Number({ description, examples: [example] }));

/** The same, or null. The description says what null means. */
export const DollarsOrNull = (description: string, example: number) =>
  Type.Union([Type.Unsafe<money.Dollars>(Type.Number()), Type.Null()], {
    description,
    examples: [example],
  });

/** Marks dollars in a request. A symbol, because JSON Schema and the OpenAPI document have no use for it. */
export const IS_MONEY = Symbol('money');

/** Dollars in a request. http/amounts.ts checks exactness and bounds. */
export const DollarsAsked = (description: string, example = 0.05) =>
  Type.Union([Type.Number(), Type.String()], {
    description: `${description} A number, or a decimal string such as "0.05". At most six decimals.`,
    examples: [example],
    [IS_MONEY]: true,
  });

/** Dollars in a request, or null. The description says what null means. */
export const DollarsAskedOrNull = (description: string, example: number) =>
  Type.Union([Type.Number(), Type.String(), Type.Null()], {
    description,
    examples: [example],
    [IS_MONEY]: true,
  });

/** Marks a key in a request. A symbol, as for dollars. */
export const IS_API_KEY = Symbol('API key');

/** A key in a request. What cannot be one is refused as an unknown key is (401), not as a malformed body. */
export const KeyAsked = (description: string) =>
  Type.String({ description, examples: ['fare_ck_live_...'], [IS_API_KEY]: true });

export const Count = (description: string, example = 3) =>
  Type.Integer({ minimum: 0, description, examples: [example] });

/** Our keyword for the most levels of arrays and objects; JSON Schema has none. */
export const LEVELS_MAX = 'x-levelsMax';

/**
 * Our keyword for what a value must be, in words: the end of the sentence "It must be ...". A pattern says it
 * in symbols.
 */
export const MUST_BE = 'x-mustBe';

/** Text of a form that needs words. */
export const Patterned = (pattern: string, mustBe: string, options: TStringOptions = {}) =>
  Type.String({ pattern, [MUST_BE]: mustBe, ...options });

/** An object of the caller's own: any members, nested up to NESTING_MAX levels. */
export const FreeObject = (description: string, example: Readonly<Record<string, unknown>>) =>
  Type.Record(Type.String(), Type.Unknown(), {
    [LEVELS_MAX]: NESTING_MAX,
    description: `${description} Nested at most ${NESTING_MAX} levels deep.`,
    examples: [example],
  });

export const Text = (description: string, example: string) =>
  Type.String({ description, examples: [example] });

/** One of the given words. */
export const Word = <const T extends readonly string[]>(words: T, description: string) =>
  Type.Unsafe<T[number]>({ type: 'string', enum: words, description, examples: [words[0]] });

export const TimeOf = (description: string, example = '2026-11-21T09:16:13.669Z') =>
  Type.String({ format: 'date-time', description, examples: [example] });

export const OrNull = <T extends TSchema>(
  schema: T,
  description: string,
  example: unknown = null,
) => Type.Union([schema, Type.Null()], { description, examples: [example] });

export const Timestamp = TimeOf('When it was made, in UTC.');

/** Any id of this kind. The example has the right form. */
export const Id = (kind: IdKind, description: string) => {
  const example = wireId(kind, '01a1fd64-55e5-7aa3-b31e-95f51a48130e');
  return Patterned(idPattern(kind), `an id such as ${example}`, {
    description,
    examples: [example],
  });
};

/**
 * Any printable text that is not all blank: no control characters, line separators, unpaired surrogates, or marks of
 * writing direction, which would reorder adjacent text. Joiners are allowed, because emoji and some scripts need them.
 */
export const PrintableText = (maxLength: number, example = 'search') => {
  const { pattern, mustBe } = printable(maxLength);
  return Patterned(pattern, mustBe, {
    minLength: 1,
    maxLength,
    description: `Printable text of 1 to ${maxLength} characters, not all blank.`,
    examples: [example],
  });
};

/** The rule of PrintableText, also for text in arguments of commands. The pattern needs the flag `u`. */
export function printable(maxLength: number) {
  return {
    pattern:
      '^(?=.*[^\\s\\p{Default_Ignorable_Code_Point}])' +
      `[^\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Bidi_Control}]{1,${maxLength}}$`,
    mustBe: `printable text of 1 to ${maxLength} characters, not all blank`,
  };
}

export const ToolName = PrintableText(TOOL_NAME_MAX);

/** Text that Postgres can store: no NUL, no unpaired surrogates. */
export const PlainText = (maxLength: number, example = 'Searches the web.') =>
  Patterned(
    '^[^\\u0000\\p{Cs}]*$',
    `text of at most ${maxLength} characters, without NUL or unpaired surrogates`,
    { maxLength, examples: [example] },
  );

const LIMIT_MAX = 100;
export const LIMIT_DEFAULT = 50;

/** The query parameters of every list. */
export const pageParameters = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: LIMIT_MAX,
      default: LIMIT_DEFAULT,
      description: `The number of items per page, from 1 to ${LIMIT_MAX}. A page of large items has fewer.`,
      examples: [20],
    }),
  ),
  cursor: Type.Optional(
    Type.String({ description: 'The `nextCursor` of the previous page. Omit it for the first.' }),
  ),
};

/** The members that every list has besides its items. */
export const pageMarks = {
  hasMore: Type.Boolean({ description: 'Whether another page follows.', examples: [false] }),
  nextCursor: Type.Union([Type.String(), Type.Null()], {
    description: 'Send it as `cursor` to get the next page. Null on the last page.',
    examples: [null],
  }),
};

/** A date, or a time with its zone, in ISO 8601; http/query.ts checks the form and the bounds. */
export const TimeBound = (description: string, example: string) =>
  Type.Union([Type.String({ format: 'date' }), Type.String({ format: 'date-time' })], {
    description: `${description} Must be between 1970-01-01 and 9999-12-31T00:00:00Z.`,
    examples: [example],
  });

/** The query parameters of everything that can be limited to a range of time. */
export const timeRange = {
  from: Type.Optional(
    TimeBound('The beginning of the range, inclusive: a date or time in ISO 8601.', '2026-11-01'),
  ),
  to: Type.Optional(
    TimeBound('The end of the range, exclusive: a date or time in ISO 8601.', '2026-12-01'),
  ),
};

export const PageQuery = Closed(pageParameters);
export type PageQuery = Static<typeof PageQuery>;

const TimeQuery = Closed(timeRange);
export type TimeQuery = Static<typeof TimeQuery>;

export const NoQuery = Closed({});
