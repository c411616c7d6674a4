/** Lists of the API, and the objects that they have. */
import { membersOf } from './settings.js';

/** A list of the API, item by item across all pages, or page by page. */
export class List {
  #load;
  #name;

  /** `load(cursor)` resolves with the service's page; its items are in the member `name`. */
  constructor(name, load) {
    this.#name = name;
    this.#load = load;
  }

  /** The page for a `nextCursor`, or the first page. */
  page(cursor) {
    return this.#load(cursor);
  }

  async *[Symbol.asyncIterator]() {
    let page = await this.#load();
    yield* page[this.#name];
    while (page.hasMore) {
      page = await this.#load(page.nextCursor);
      yield* page[this.#name];
    }
  }
}

/**
 * The list at a path, with the caller's filters, page size and options. `known`: the names of the list's filters. A
 * filter that is changed later does not change the list.
 */
export function listAt(calls, path, name, filter = {}, known, options) {
  const query = membersOf(filter, [...known, 'limit', 'cursor']);
  const isPage = ({ [name]: items, hasMore, nextCursor }) =>
    Array.isArray(items) && (!hasMore || typeof nextCursor === 'string');
  return new List(name, (cursor = query.cursor) =>
    calls.get(path, { ...query, cursor }, options, isPage),
  );
}

/** Objects of the API that can be listed and read by id. `filters`: the names of the list's filters. */
export class Records {
  #calls;
  #path;
  #name;
  #filters;

  constructor(calls, path, name, filters) {
    this.#calls = calls;
    this.#path = path;
    this.#name = name;
    this.#filters = filters;
  }

  list(filter, options) {
    return listAt(this.#calls, this.#path, this.#name, filter, this.#filters, options);
  }

  get(id, options) {
    return this.#calls.get(`${this.#path}/${idInPath(id)}`, {}, options);
  }
}

/**
 * Prepares an id for a path. A value that cannot be an id names nothing: it must not name another path, as `.` and `..`
 * would, nor break off the encoding, as half a surrogate pair would.
 */
export function idInPath(id) {
  const mayBeId = typeof id === 'string' && !/^\.{0,2}$/.test(id);
  return encodeURIComponent(mayBeId ? id.toWellFormed() : 'none');
}
