/**
 * Stripe's form encoding: `a[b][0][c]=v` becomes `{a: {b: {'0': {c: 'v'}}}}`. Lists are objects with
 * their indices as keys, and `a[]=v` takes the next index.
 */
import { invalidParam } from './errors.ts';

export type FormValue = string | Form;
/** Has no prototype, so that no name that a client sends is special. */
export interface Form {
  [name: string]: FormValue;
}

const DEPTH_MAX = 8;

export function parseForm(text: string): Form {
  const form = emptyForm();
  for (const [name, value] of new URLSearchParams(text)) {
    const path = pathOf(name);
    const last = path.pop() as string;
    const parent = path.reduce((into, part) => descend(into, part, name), form);
    const key = last === '' ? nextIndex(parent) : last;
    if (typeof parent[key] === 'object') throw clash(name);
    parent[key] = value;
  }
  return form;
}

function emptyForm(): Form {
  return Object.create(null) as Form;
}

/** `a[b][]` to `['a', 'b', '']`. */
function pathOf(name: string): string[] {
  const match = /^([^[\]]+)((?:\[[^[\]]*\])*)$/.exec(name);
  if (!match) throw invalidParam(name, `Invalid parameter name: ${name}`);
  const rest = [...(match[2] ?? '').matchAll(/\[([^[\]]*)\]/g)].map((part) => part[1] ?? '');
  if (rest.length > DEPTH_MAX) throw invalidParam(name, `Parameter nested too deeply: ${name}`);
  return [match[1] ?? '', ...rest];
}

function descend(into: Form, part: string, name: string): Form {
  const key = part === '' ? nextIndex(into) : part;
  const child = (into[key] ??= emptyForm());
  if (typeof child === 'string') throw clash(name);
  return child;
}

function nextIndex(form: Form): string {
  return String(Object.keys(form).length);
}

function clash(name: string) {
  return invalidParam(name, `Parameter ${name} is both a value and an object`);
}
