/**
 * Checks bodies against their schemas. Wrong types are never coerced. Unknown members are refused, but those of the
 * open bodies (docs/decisions/0046-bodies-refuse-unknown-members.md) are ignored.
 */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { Static, TSchema } from 'typebox';
import { ApiError } from '../domain/errors.ts';
import { isNestedDeeperThan } from '../domain/nesting.ts';
import { IS_API_KEY, IS_MONEY, LEVELS_MAX, MUST_BE } from '../schemas/shapes.ts';
import { invalidAmount } from './amounts.ts';
import { invalidApiKey } from './invalid-api-key.ts';

const ajv = new Ajv({
  strictTypes: false,
  verbose: true,
  formats: { 'date-time': true },
  // TypeBox makes valid schemas, and the first body would wait until Ajv has compiled the meta-schema.
  meta: false,
  validateSchema: false,
});
ajv.addKeyword({
  keyword: LEVELS_MAX,
  validate: (levels: number, value: unknown) => !isNestedDeeperThan(levels, value),
});

ajv.addKeyword(MUST_BE);

/**
 * A function that gives a body its type, or throws a 400 that says what is wrong. The schema is compiled with its first
 * body.
 */
export function bodyValidator<T extends TSchema>(schema: T): (body: unknown) => Static<T> {
  let check: ValidateFunction | undefined;
  return (body) => {
    check ??= ajv.compile(schema);
    if (check(body)) return body as Static<T>;
    throw invalid(check.errors ?? []);
  };
}

function invalid(errors: readonly ErrorObject[]): ApiError {
  const error = tellingOf(errors);
  const path = error?.instancePath ?? '';
  const isMarked = (mark: symbol) =>
    errors.some(({ instancePath, parentSchema }) => {
      return instancePath === path && parentSchema !== undefined && mark in parentSchema;
    });
  if (isMarked(IS_MONEY)) {
    const mustBe = 'dollars, as a number or as a decimal string such as "0.02"';
    return invalidAmount(path.slice(1).replaceAll('/', '.'), error?.data, mustBe);
  }
  if (isMarked(IS_API_KEY)) return invalidApiKey();
  if (path === '' && error?.keyword === 'type') {
    return new ApiError('invalid_request', 'The body must be a JSON object.');
  }
  const missing: unknown = error?.params['missingProperty'];
  const member = missing ?? unknownMember(error);
  const members = [...path.slice(1).split('/'), ...(typeof member === 'string' ? [member] : [])];
  const param = members.filter((name) => name !== '').join('.') || undefined;
  return new ApiError(
    missing === 'amount' ? 'invalid_amount' : 'invalid_request',
    `${param ?? 'The body'} ${error ? problemOf(error) : 'is not valid'}.`,
    param === undefined ? {} : { param },
  );
}

const MEMBER_SHOWN_MAX = 40;

/** The name of a member that the body may not have. Undefined for a member of one of its objects. */
function unknownMember(error: ErrorObject | undefined): string | undefined {
  const name: unknown = error?.params['additionalProperty'];
  const isShown = error?.instancePath === '' && typeof name === 'string';
  return isShown && name.length <= MEMBER_SHOWN_MAX ? name : undefined;
}

/**
 * When several types are allowed, ajv reports an error for each that does not match, and a last one that sums them up.
 * The error for the type that was sent is more informative, and so is that of a member of it: the deepest.
 */
function tellingOf(errors: readonly ErrorObject[]): ErrorObject | undefined {
  const last = errors.at(-1);
  if (last?.keyword !== 'anyOf') return last;
  return (
    errors.find(({ keyword }) => keyword !== 'type' && keyword !== 'anyOf') ??
    errors.findLast(({ instancePath }) => instancePath.length > last.instancePath.length) ??
    last
  );
}

const NAMED: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'an integer',
  boolean: 'true or false',
  array: 'an array',
  null: 'null',
  object: 'an object',
};

const oneOf = new Intl.ListFormat('en-US', { type: 'disjunction' });

const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;

const named = (type: string) => NAMED[type] ?? type;

function problemOf(error: ErrorObject): string {
  const params: Readonly<Record<string, unknown>> = error.params;
  const limit = Number(params['limit']);
  switch (error.keyword) {
    case 'required':
      return 'is missing';
    case LEVELS_MAX:
      return `may be nested at most ${error.schema as number} levels deep`;
    case 'pattern':
      return `must be ${String(error.parentSchema?.[MUST_BE])}`;
    case 'additionalProperties': {
      const mustBe: unknown = error.parentSchema?.[MUST_BE];
      if (typeof mustBe === 'string') return `must be ${mustBe}`;
      return unknownMember(error) === undefined
        ? 'has an unknown field'
        : 'is not a field of this body';
    }
    case 'anyOf': {
      const types = (error.schema as readonly { type: string }[]).map(({ type }) => named(type));
      return `must be ${oneOf.format(types)}`;
    }
    case 'type':
      return `must be ${named(String(params['type']))}`;
    case 'enum':
    case 'const': {
      const allowed: readonly unknown[] = [
        params['allowedValues'] ?? params['allowedValue'],
      ].flat();
      return `must be ${allowed.length > 1 ? 'one of: ' : ''}${allowed.join(', ')}`;
    }
    case 'minimum':
      return `must be at least ${limit}`;
    case 'maximum':
      return `must be at most ${limit}`;
    case 'minLength':
      return `must have at least ${counted(limit, 'character')}`;
    case 'maxLength':
      return `must have at most ${counted(limit, 'character')}`;
    case 'minItems':
      return `must have at least ${counted(limit, 'item')}`;
    case 'maxItems':
      return `must have at most ${counted(limit, 'item')}`;
    case 'minProperties':
      return `must have at least ${counted(limit, 'field')}`;
    case 'maxProperties':
      return `must have at most ${counted(limit, 'field')}`;
    case 'uniqueItems':
      return 'must not contain the same item twice';
    default:
      return error.message ?? 'is not valid';
  }
}
