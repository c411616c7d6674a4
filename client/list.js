/** A list of the API: item by item over all of its pages, or a page at a time. */
export class List {
  #load;
  #name;

  /** `load(cursor)` resolves with the page as the service answers; its items are in the member `name`. */
  constructor(name, load) {
    this.#name = name;
    this.#load = load;
  }

  /** The page behind a `nextCursor`, or the first one. */
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

/** The list at a path: filters, page size and per-call options as the caller gave them. */
export function listAt(calls, path, name, filter, options) {
  return new List(name, (cursor) => calls.get(path, { ...filter, cursor }, options));
}

/** An id in a path; one that could not be an id names nothing. */
export function idInPath(id) {
  return encodeURIComponent(typeof id === 'string' && id !== '' ? id : 'none');
}
