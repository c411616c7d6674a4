/**
 * A queue that serves its owners in turn, one item each, and each owner's items in order: an owner with one waiting
 * item is served within one round, no matter how many items others have.
 */
interface Owned<T> {
  items: T[];
  /** Index of the first waiting item; those before it have been taken. */
  head: number;
}

/** Taken items are removed once there are this many, so that taking stays cheap. */
const TAKEN_MAX = 256;

export class FairQueue<T> {
  /** In the order in which they are served next. */
  readonly #owners = new Map<string, Owned<T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** How many owners have waiting items. */
  get owners(): number {
    return this.#owners.size;
  }

  sizeOf(owner: string): number {
    const owned = this.#owners.get(owner);
    return owned ? owned.items.length - owned.head : 0;
  }

  push(owner: string, item: T): void {
    this.#size += 1;
    const owned = this.#owners.get(owner);
    if (owned) owned.items.push(item);
    else this.#owners.set(owner, { items: [item], head: 0 });
  }

  /** Puts an item back in front of this owner's others. To put back several, start with the last. */
  putBack(owner: string, item: T): void {
    this.#size += 1;
    const owned = this.#owners.get(owner);
    if (!owned) this.#owners.set(owner, { items: [item], head: 0 });
    else if (owned.head > 0) owned.items[(owned.head -= 1)] = item;
    else owned.items.unshift(item);
  }

  /** Undoes the last takes: these items are taken next, in the same order. */
  untake(items: readonly T[], ownerOf: (item: T) => string): void {
    this.#size += items.length;
    const others = new Map(this.#owners);
    this.#owners.clear();
    for (const [owner, taken] of Map.groupBy(items, ownerOf)) {
      const owned = others.get(owner);
      this.#owners.set(owner, {
        items: owned ? taken.concat(owned.items.slice(owned.head)) : taken,
        head: 0,
      });
      others.delete(owner);
    }
    for (const [owner, owned] of others) this.#owners.set(owner, owned);
  }

  /** Takes all of these out, each owner's in order. */
  takeAll(isWanted: (item: T) => boolean): T[] {
    const taken: T[] = [];
    for (const [owner, owned] of this.#owners) {
      const waiting = owned.items.slice(owned.head);
      const left = waiting.filter((item) => !isWanted(item));
      if (left.length === waiting.length) continue;
      taken.push(...waiting.filter(isWanted));
      owned.items = left;
      owned.head = 0;
      if (left.length === 0) this.#owners.delete(owner);
    }
    this.#size -= taken.length;
    return taken;
  }

  /** The next owner's first item. */
  take(): T | undefined {
    for (const [owner, owned] of this.#owners) {
      const item = owned.items[owned.head];
      owned.head += 1;
      this.#size -= 1;
      const isEmpty = owned.head === owned.items.length;
      // A single owner keeps its place, which is the usual case.
      if (isEmpty || this.#owners.size > 1) {
        this.#owners.delete(owner);
        if (!isEmpty) this.#owners.set(owner, owned);
      }
      if (owned.head >= TAKEN_MAX) {
        owned.items = owned.items.slice(owned.head);
        owned.head = 0;
      }
      return item;
    }
    return undefined;
  }
}
