/**
 * Parses a query string by its schema. Every parameter is checked and none is clamped. Unknown parameters are refused,
 * because a mistyped filter would otherwise give a wrong answer.
 */
import type { ParsedUrlQuery } from 'node:querystring';
import type { Static, TObject } from 'typebox';
import type { ApiError } from '../domain/errors.ts';
import { TIME_MS_MAX } from '../domain/ids.ts';
import { parseTime } from '../domain/iso-time.ts';
import { MUST_BE } from '../schemas/shapes.ts';
import { invalidField } from './invalid-field.ts';

/** The part of JSON Schema that parameters use. */
interface Parameter {
  readonly type?: string;
  readonly enum?: readonly string[];
  /** Only dates and times have it. */
  readonly anyOf?: readonly unknown[];
  readonly pattern?: string;
  readonly [MUST_BE]?: string;
  readonly minimum?: number;
  readonly maximum?: number;
}

const NAME_LENGTH_MAX = 40;

/** Gives a query its type, or throws a 400 that says what is wrong. */
export function queryReader<T extends TObject>(schema: T): (query: ParsedUrlQuery) => Static<T> {
  const parameters = Object.entries(schema.properties as Record<string, Parameter>);
  const names = parameters.map(([name]) => name);
  const required = new Set<string>(schema.required);
  return (query) => {
    const unknown = Object.keys(query).find((name) => !names.includes(name));
    if (unknown !== undefined) throw unknownParameter(unknown, names);
    const read: Record<string, unknown> = {};
    for (const [name, parameter] of parameters) {
      const text = single(query, name);
      if (text !== undefined) read[name] = valueOf(name, parameter, text);
      else if (required.has(name)) throw invalid(name, 'is required.');
    }
    return read as Static<T>;
  };
}

function unknownParameter(name: string, names: readonly string[]): ApiError {
  const param = name.slice(0, NAME_LENGTH_MAX);
  const known = names.length === 0 ? 'no query parameters' : `only ${names.join(', ')}`;
  return invalid(param, `is not a query parameter of this endpoint, which takes ${known}.`);
}

function single(query: ParsedUrlQuery, name: string): string | undefined {
  const value = query[name];
  if (Array.isArray(value)) throw invalid(name, 'was given more than once.');
  if (value?.includes('\0')) throw invalid(name, 'must be text without NUL.');
  return value;
}

function valueOf(name: string, parameter: Parameter, text: string): unknown {
  const { type, anyOf, pattern, minimum = 0, maximum = 0 } = parameter;
  if (type === 'integer') {
    const number = Number(text);
    if (/^\d{1,9}$/.test(text) && number >= minimum && number <= maximum) return number;
    throw invalid(name, `must be an integer from ${minimum} to ${maximum}.`);
  }
  if (type === 'boolean') {
    if (text === 'true' || text === 'false') return text === 'true';
    throw invalid(name, 'must be true or false.');
  }
  if (parameter.enum && !parameter.enum.includes(text)) {
    throw invalid(name, `must be one of: ${parameter.enum.join(', ')}.`);
  }
  if (anyOf && !isTime(text)) {
    throw invalid(
      name,
      'must be a date or time in ISO 8601, from 1970-01-01T00:00:00Z to 9999-12-31T00:00:00Z, such as 2026-01-31 or ' +
        '2026-01-31T09:30:00Z.',
    );
  }
  if (pattern !== undefined && !new RegExp(pattern, 'u').test(text)) {
    throw invalid(name, `must be ${parameter[MUST_BE] ?? ''}.`);
  }
  return text;
}

function isTime(text: string): boolean {
  const timeMs = parseTime(text);
  return timeMs >= 0 && timeMs <= TIME_MS_MAX;
}

function invalid(param: string, problem: string): ApiError {
  return invalidField(param, `${param} ${problem}`);
}
