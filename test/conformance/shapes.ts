/**
 * Compares what is sent to Stripe, or to the simulator, and what comes back, with the declarations of the `stripe`
 * package: requests, answers, errors and events. Members that are unknown or missing, and values of a wrong type or
 * outside of an enum, are reported.
 */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { parseForm, type FormValue } from '../../simulator/http/form.ts';
import { Declarations, type Schema } from './declarations.ts';
import { findMethod } from './methods.ts';

/** The objects that Farebox handles, by their `object`. Any other is only an id here. */
const OBJECTS = [
  'balance_transaction',
  'charge',
  'checkout.session',
  'customer',
  'dispute',
  'event',
  'list',
  'payment_intent',
  'payment_method',
  'radar.early_fraud_warning',
  'refund',
  'setup_intent',
  'credit_note',
  'invoice',
  'line_item',
  'tax.calculation',
];

export interface Exchange {
  readonly verb: string;
  readonly path: string;
  /** The query of a GET, the body of a POST. */
  readonly form: string;
  readonly status: number;
  readonly body: string;
}

export class Shapes {
  /** `customers.create`, for every call that was answered well. */
  readonly answered = new Set<string>();
  readonly eventTypes = new Set<string>();
  readonly #declarations = new Declarations(OBJECTS, ['card', 'link', 'us_bank_account']);
  readonly #answers = new Validators(this.#declarations, false);
  readonly #params = new Validators(this.#declarations, true);

  /** What is wrong, one line each. Empty if all is as declared. */
  differences(exchange: Exchange): string[] {
    const { verb, path, form, status, body } = exchange;
    const method = findMethod(verb, path);
    if (!method) return status === 404 ? [] : [`${verb} ${path} is not in the table of methods`];
    const what = `${method.call} (${status})`;
    const value: unknown = JSON.parse(body);
    if (status >= 300)
      return this.#answers.differences(`error of ${what}`, this.#errorSchema(), value);
    this.answered.add(method.call);
    const { params, answer } = this.#declarations.methodOf(method.file, method.name);
    return [
      ...this.#params.differences(`parameters of ${what}`, params, plain(parseForm(form))),
      ...(method.file === 'resources/Events'
        ? eventsIn(value).flatMap((event) => this.differencesOfEvent(event))
        : this.#answers.differences(`answer to ${what}`, answer, value)),
    ];
  }

  differencesOfEvent(event: { readonly type: string }): string[] {
    this.eventTypes.add(event.type);
    const name = event.type
      .split(/[._]/)
      .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
      .join('');
    const schema = this.#declarations.schemaOf('resources/Events', `${name}Event`);
    return this.#answers.differences(`event ${event.type}`, schema, event);
  }

  /** The package declares the same members for a failed payment, with the codes and types of every error. */
  #errorSchema(): Schema {
    const declared = this.#declarations.schemaOf(
      'resources/PaymentIntents',
      'PaymentIntent.LastPaymentError',
    );
    return {
      type: 'object',
      properties: { error: declared },
      required: ['error'],
      additionalProperties: false,
    };
  }
}

/** Compiles each definition once. */
class Validators {
  readonly #declarations: Declarations;
  readonly #ajv: Ajv;
  readonly #compiled = new Map<string, ValidateFunction>();

  /** Parameters arrive as text, so they may become numbers and booleans. */
  constructor(declarations: Declarations, isText: boolean) {
    this.#declarations = declarations;
    const options = {
      strict: false,
      verbose: true,
      meta: false,
      validateSchema: false,
      inlineRefs: false,
      // Most are used a few times, and optimizing takes as long as compiling.
      code: { optimize: false },
    };
    this.#ajv = new Ajv({ ...options, coerceTypes: isText });
  }

  differences(what: string, schema: Schema, value: unknown): string[] {
    const validate = this.#compile(schema);
    if (validate(value)) return [];
    return [...new Set(worst(validate.errors ?? []).map((error) => `${what}: ${textOf(error)}`))];
  }

  #compile(schema: Schema): ValidateFunction {
    const key = JSON.stringify(schema);
    const known = this.#compiled.get(key);
    if (known) return known;
    for (const [name, definition] of Object.entries(this.#declarations.definitions)) {
      if (!(name in this.#ajv.schemas)) this.#ajv.addSchema(definition, name);
    }
    const validate = this.#ajv.compile(schema as object);
    this.#compiled.set(key, validate);
    return validate;
  }
}

/** The events of a list, or the one event. */
function eventsIn(value: unknown): { readonly type: string }[] {
  const { data, object } = value as { object: string; data: { type: string }[] };
  return object === 'list' ? data : [value as { type: string }];
}

/** An alternative that does not apply fails early. The one that was meant fails deepest. */
function worst(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const deepest = Math.max(...errors.map(depthOf));
  return errors.filter((error) => depthOf(error) === deepest && error.keyword !== 'anyOf');
}

function depthOf({ instancePath }: ErrorObject): number {
  return instancePath.split('/').length;
}

function textOf({ instancePath, message = '', params, data }: ErrorObject): string {
  const { additionalProperty } = params as Record<string, unknown>;
  const found = JSON.stringify(additionalProperty ?? data)?.slice(0, FOUND_LENGTH_MAX);
  return `${instancePath || '/'} ${message}: ${found}`;
}

const FOUND_LENGTH_MAX = 60;

/** Objects with the keys 0, 1, 2, ... become arrays. */
function plain(value: FormValue): unknown {
  if (typeof value === 'string') return value;
  const entries = Object.entries(value).map(([name, each]) => [name, plain(each)] as const);
  const isList = entries.length > 0 && entries.every(([name], index) => name === String(index));
  return isList ? entries.map(([, each]) => each) : Object.fromEntries(entries);
}
