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

/** The list at a path, with the caller's filters, page size and options. */
export function listAt(calls, path, name, filter, options) {
  return new List(name, (cursor) => calls.get(path, { ...filter, cursor }, options));
}

/** Prepares an id for a path. A value that cannot be an id names nothing. */
export function idInPath(id) {
  return encodeURIComponent(typeof id === 'string' && id !== '' ? id : 'none');
}
