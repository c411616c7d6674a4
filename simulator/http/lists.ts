/** Lists as Stripe pages them: newest first, `limit`, `starting_after`, `ending_before`, `created`. */
import type { Context } from '../context.ts';
import { noSuch } from './errors.ts';
import type { Params } from './params.ts';
import type { Kind, Kinds, Page } from '../store.ts';

export interface List<T> {
  readonly object: 'list';
  readonly url: string;
  readonly has_more: boolean;
  readonly data: T[];
}

export function listPage<K extends Kind>(
  { store }: Context,
  params: Params,
  kind: K,
  url: string,
  where: Page['where'],
): List<Kinds[K]> {
  const limit = params.integer('limit', { min: 1, max: 100 }) ?? 10;
  const cursor = (name: 'starting_after' | 'ending_before'): number | undefined => {
    const id = params.string(name);
    const seq = id === undefined ? undefined : store.seqOf(kind, id);
    if (id !== undefined && seq === undefined) throw noSuch(kind, id, name);
    return seq;
  };
  const after = cursor('starting_after');
  const before = cursor('ending_before');
  // One more than asked for tells whether there are more.
  const found = store.list(kind, {
    ...createdRange(params),
    where,
    after,
    before,
    limit: limit + 1,
  });
  const data = before === undefined ? found.slice(0, limit) : found.slice(-limit);
  return { object: 'list', url, has_more: found.length > limit, data };
}

/** `created=n`, or `created[gt|gte|lt|lte]=n`, as bounds that are both included. */
function createdRange(params: Params): Pick<Page, 'createdMin' | 'createdMax'> {
  if (!params.isObject('created')) {
    const exact = params.integer('created');
    return { createdMin: exact ?? 0, createdMax: exact ?? Number.MAX_SAFE_INTEGER };
  }
  const created = params.object('created');
  const above = created?.integer('gt');
  const below = created?.integer('lt');
  return {
    createdMin: created?.integer('gte') ?? (above === undefined ? 0 : above + 1),
    createdMax:
      created?.integer('lte') ?? (below === undefined ? Number.MAX_SAFE_INTEGER : below - 1),
  };
}
