/**
 * Rows kept in memory until they change, for look-ups on every charge. They are trusted only while recent
 * changes are known. A process that does not know them goes back to the database.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { Change } from '../store/recent-changes.ts';
import type { RecentChanges } from './recent-changes.ts';

/** A row that took longer to arrive may have changed meanwhile: it is used once and not cached. */
const LOAD_MS_MAX = 500;

export interface FreshCacheOptions<T extends object> {
  readonly entriesMax: number;
  /** For rows that may be large: about how many bytes each takes, and how many all may take. */
  readonly bytes?: { readonly max: number; readonly of: (row: T) => number };
  /** The rows that one query reads: as many as keys are missing, unless rows may be large. */
  readonly loadedMax?: number;
  /** Rows for the keys that exist. Misses are not cached. */
  readonly load: (keys: readonly string[]) => Promise<ReadonlyMap<string, T>>;
  readonly changes: RecentChanges;
  /** The key of the row that changed. Undefined: it is not a row of this cache. */
  readonly keyOf: (change: Change) => string | undefined;
}

interface Misses<T> {
  readonly keys: Set<string>;
  readonly rows: Promise<ReadonlyMap<string, T>>;
}

export class FreshCache<T extends object> {
  readonly #options: FreshCacheOptions<T>;
  readonly #entries: LRUCache<string, T>;
  #version = 0;
  #misses: Misses<T> | undefined;
  /** The keys that were dropped since the present query began, which may have read the rows before they changed. */
  readonly #droppedMeanwhile = new Set<string>();
  /** How often everything was dropped. */
  #clearings = 0;
  /** Settles when the latest query does. */
  #loading: Promise<unknown> = Promise.resolve();

  constructor(options: FreshCacheOptions<T>) {
    this.#options = options;
    const { entriesMax, bytes } = options;
    this.#entries = new LRUCache({
      max: entriesMax,
      dispose: () => (this.#version += 1),
      ...(bytes && { maxSize: bytes.max, sizeCalculation: bytes.of }),
    });
    options.changes.onChange((changes) => {
      if (!changes) return this.#clear();
      this.#drop(changes.map(options.keyOf).filter((key) => key !== undefined));
    });
  }

  /** The entry in memory, if it can be trusted. Synchronous: the hot path waits for nothing. */
  peek(key: string): T | undefined {
    if (!this.#options.changes.areKnown) return undefined;
    // The order of use matters only when the cache is about to evict entries, and tracking it costs as much as
    // everything else here.
    const { entriesMax, bytes } = this.#options;
    const { size, calculatedSize } = this.#entries;
    const isRoomy = size * 2 < entriesMax && (!bytes || calculatedSize * 2 < bytes.max);
    return isRoomy ? this.#entries.peek(key) : this.#entries.get(key);
  }

  /**
   * Changes when any row may have changed, or has left memory: so nobody need keep rows that are no longer here.
   * Undefined while `peek` would find nothing, because changes are not known.
   */
  get version(): number | undefined {
    return this.#options.changes.areKnown ? this.#version : undefined;
  }

  forget(key: string): void {
    this.#drop([key]);
  }

  /** Reads from the database. Keys requested in one turn of the event loop are read in one query. */
  async load(key: string): Promise<T | undefined> {
    const { loadedMax = Infinity } = this.#options;
    const isFull = this.#misses && this.#misses.keys.size >= loadedMax;
    if (!this.#misses || isFull) this.#misses = this.#collect();
    this.#misses.keys.add(key);
    const rows = await this.#misses.rows;
    return rows.get(key);
  }

  #collect(): Misses<T> {
    const keys = new Set<string>();
    // One query at a time: misses that arrive meanwhile share the next one.
    const rows = Promise.all([this.#loading, nextTurn()]).then(async () => {
      if (this.#misses?.keys === keys) this.#misses = undefined;
      this.#droppedMeanwhile.clear();
      const startedAt = performance.now();
      const clearings = this.#clearings;
      const found = await this.#options.load([...keys]);
      // A row that was not trusted, and is gone.
      this.#drop([...keys].filter((key) => this.#entries.has(key) && !found.has(key)));
      if (performance.now() - startedAt < LOAD_MS_MAX && clearings === this.#clearings) {
        for (const [key, value] of found) {
          if (!this.#droppedMeanwhile.has(key)) this.#entries.set(key, value);
        }
      }
      return found;
    });
    this.#loading = rows.catch(() => {});
    return { keys, rows };
  }

  #drop(changed: readonly string[]): void {
    if (changed.length > 0) this.#version += 1;
    for (const key of changed) {
      this.#entries.delete(key);
      this.#droppedMeanwhile.add(key);
    }
  }

  #clear(): void {
    this.#version += 1;
    this.#clearings += 1;
    this.#entries.clear();
  }
}
