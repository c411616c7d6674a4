/** `expand[]=payment_intent.latest_charge`: puts objects in the place of their ids, in an answer. */
import { invalidParam } from './errors.ts';
import type { Store } from '../store.ts';

const DEPTH_MAX = 4;

type Json = Record<string, unknown>;

export function expand(store: Store, body: unknown, paths: readonly string[]): void {
  for (const path of paths) {
    const parts = path.split('.');
    if (parts.length > DEPTH_MAX) {
      const message = `You cannot expand more than ${DEPTH_MAX} levels of a property: ${path}`;
      throw invalidParam('expand', message);
    }
    expandPath(store, body as Json, parts, path);
  }
}

function expandPath(store: Store, object: Json, parts: readonly string[], path: string): void {
  const [name, ...rest] = parts;
  const value = name === undefined ? undefined : object[name];
  if (name === undefined || value === undefined) throw notExpandable(path);
  if (name === 'data' && Array.isArray(value)) {
    for (const item of value as Json[]) expandPath(store, item, rest, path);
    return;
  }
  if (value === null) return;
  const expanded = typeof value === 'string' ? store.findAny(value) : value;
  if (typeof expanded !== 'object') throw notExpandable(path);
  object[name] = expanded;
  if (rest.length > 0) expandPath(store, expanded as unknown as Json, rest, path);
}

function notExpandable(path: string) {
  return invalidParam('expand', `This property cannot be expanded (${path}).`);
}
