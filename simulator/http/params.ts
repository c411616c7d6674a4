/**
 * Reads a request's parameters by name and type, and refuses malformed ones. Every parameter must be read (or named as
 * ignored) before `finish`, which refuses the rest as Stripe does: a misspelled parameter never passes unnoticed. An
 * empty string means "not set", as on Stripe.
 */
import { invalidParam } from './errors.ts';
import type { Form, FormValue } from './form.ts';

interface Range {
  readonly min?: number;
  readonly max?: number;
}

export class Params {
  readonly #form: Form;
  readonly #prefix: string;
  readonly #read = new Set<string>();
  readonly #children: Params[] = [];

  constructor(form: Form, prefix = '') {
    this.#form = form;
    this.#prefix = prefix;
  }

  string(name: string): string | undefined {
    const value = this.#take(name);
    if (typeof value === 'object') throw invalidParam(this.pathOf(name), `Invalid string: ${name}`);
    return value === '' ? undefined : value;
  }

  required(name: string): string {
    const value = this.string(name);
    if (value === undefined) throw this.missing(name);
    return value;
  }

  integer(name: string, range: Range = {}): number | undefined {
    const text = this.string(name);
    if (text === undefined) return undefined;
    const value = Number(text);
    if (!/^-?\d+$/.test(text) || !Number.isSafeInteger(value)) {
      throw invalidParam(
        this.pathOf(name),
        `Invalid integer: ${text}`,
        'parameter_invalid_integer',
      );
    }
    if (value < (range.min ?? -Infinity)) {
      throw invalidParam(
        this.pathOf(name),
        `This value must be greater than or equal to ${range.min}.`,
        'parameter_invalid_integer',
      );
    }
    if (value > (range.max ?? Infinity)) {
      throw invalidParam(
        this.pathOf(name),
        `This value must be less than or equal to ${range.max}.`,
        'parameter_invalid_integer',
      );
    }
    return value;
  }

  boolean(name: string): boolean | undefined {
    const text = this.string(name);
    if (text !== undefined && text !== 'true' && text !== 'false') {
      throw invalidParam(this.pathOf(name), `Invalid boolean: ${text}`);
    }
    return text === undefined ? undefined : text === 'true';
  }

  oneOf<T extends string>(name: string, allowed: readonly T[]): T | undefined {
    const text = this.string(name);
    if (text !== undefined && !(allowed as readonly string[]).includes(text)) {
      throw invalidParam(
        this.pathOf(name),
        `Invalid ${this.pathOf(name)}: must be one of ${allowed.join(', ')}`,
      );
    }
    return text as T | undefined;
  }

  url(name: string): string | undefined {
    const text = this.string(name);
    // Replaces the placeholder for the session's id, because braces are not valid in a URL.
    const parsed = text && URL.parse(text.replaceAll('{CHECKOUT_SESSION_ID}', 'id'));
    if (text !== undefined && !/^https?:$/.test((parsed && parsed.protocol) || '')) {
      throw invalidParam(this.pathOf(name), 'Not a valid URL', 'url_invalid');
    }
    return text;
  }

  /** Three lower-case letters. The simulator supports dollars only. */
  currency(): 'usd' {
    const text = this.required('currency').toLowerCase();
    if (text !== 'usd') {
      throw invalidParam(
        this.pathOf('currency'),
        `Invalid currency: ${text}. The simulator knows usd.`,
      );
    }
    return text;
  }

  isObject(name: string): boolean {
    return typeof this.#form[name] === 'object';
  }

  object(name: string): Params | undefined {
    const value = this.#take(name);
    if (value === undefined || value === '') return undefined;
    if (typeof value === 'string') throw invalidParam(this.pathOf(name), 'Invalid object');
    return this.#child(value, this.pathOf(name));
  }

  list(name: string): Params[] {
    const value = this.#take(name);
    if (value === undefined || value === '') return [];
    if (typeof value === 'string') throw invalidParam(this.pathOf(name), 'Invalid array');
    return Object.entries(value).map(([index, item]) => {
      if (typeof item === 'string') throw invalidParam(this.pathOf(name), 'Invalid object');
      return this.#child(item, `${this.pathOf(name)}[${index}]`);
    });
  }

  /** `undefined` when the parameter is missing or empty. */
  strings(name: string): string[] | undefined {
    const value = this.#take(name);
    if (value === undefined || value === '') return undefined;
    const items = typeof value === 'string' ? [value] : Object.values(value);
    return items.map((item) => {
      if (typeof item === 'object') throw invalidParam(this.pathOf(name), 'Invalid array');
      return item;
    });
  }

  /** Merges the request's metadata into `before`. A name with an empty value is removed. */
  metadata(before: Record<string, string> = {}): Record<string, string> {
    const value = this.#take('metadata');
    if (value === undefined) return before;
    if (value === '') return {};
    if (typeof value === 'string') throw invalidParam(this.pathOf('metadata'), 'Invalid object');
    const merged = { ...before };
    for (const [name, text] of Object.entries(value)) {
      const path = `${this.pathOf('metadata')}[${name}]`;
      if (typeof text === 'object') throw invalidParam(path, 'Metadata values must be strings.');
      if (name.length > 40) throw invalidParam(path, 'Metadata keys can have up to 40 characters.');
      if (text.length > 500) {
        throw invalidParam(path, 'Metadata values can have up to 500 characters.');
      }
      if (text === '') delete merged[name];
      else merged[name] = text;
    }
    if (Object.keys(merged).length > 50) {
      throw invalidParam(this.pathOf('metadata'), 'Metadata can have up to 50 keys.');
    }
    return merged;
  }

  /** Accepts values of Stripe's that have no effect here. Their members, if any, are unknown. */
  ignore(...names: string[]): void {
    for (const name of names) if (typeof this.#form[name] !== 'object') this.#read.add(name);
  }

  finish(): void {
    const unread = Object.keys(this.#form).find((name) => !this.#read.has(name));
    if (unread !== undefined) {
      const members = Object.keys(this.#form[unread] as Form | string);
      const isObject = typeof this.#form[unread] === 'object' && members.length > 0;
      const path = `${this.pathOf(unread)}${isObject ? `[${members[0]}]` : ''}`;
      throw invalidParam(path, `Received unknown parameter: ${path}`, 'parameter_unknown');
    }
    for (const child of this.#children) child.finish();
  }

  missing(name: string) {
    const path = this.pathOf(name);
    return invalidParam(path, `Missing required param: ${path}.`, 'parameter_missing');
  }

  pathOf(name: string): string {
    return this.#prefix === '' ? name : `${this.#prefix}[${name}]`;
  }

  #take(name: string): FormValue | undefined {
    this.#read.add(name);
    return this.#form[name];
  }

  #child(form: Form, prefix: string): Params {
    const child = new Params(form, prefix);
    this.#children.push(child);
    return child;
  }
}
