/**
 * Rows kept in memory until they change, for look-ups on every charge. Another process may change them, so this one
 * asks several times for recent changes within the time in which they have to be seen, and trusts an entry only while
 * the last answer is younger than that. A process that cannot ask goes back to the database.
 */
import { LRUCache } from 'lru-cache';

/** Parts of the time in which a change has to be seen: two polls may fail, and timers may be late. */
const ASK_EVERY = 0.3;
const TRUST = 0.9;
/** A row that took longer to arrive may have changed meanwhile: it is used once and not cached. */
const LOAD_MS_MAX = 500;

export interface FreshCacheOptions<T extends object> {
  readonly entriesMax: number;
  /** How soon every process sees a change. */
  readonly seenWithinMs: number;
  /** Rows for the keys that exist. Misses are not cached. */
  readonly load: (keys: readonly string[]) => Promise<ReadonlyMap<string, T>>;
  /** Keys of all rows that changed in the last half minute; more is harmless. */
  readonly findChanged: () => Promise<readonly string[]>;
  readonly onError: (error: unknown) => void;
}

interface Misses<T> {
  readonly keys: Set<string>;
  readonly rows: Promise<ReadonlyMap<string, T>>;
}

export class FreshCache<T extends object> {
  readonly #options: FreshCacheOptions<T>;
  readonly #entries: LRUCache<string, T>;
  #trustedUntil = 0;
  #version = 0;
  #misses: Misses<T> | undefined;
  /** Settles when the latest query does. */
  #loading: Promise<unknown> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: FreshCacheOptions<T>) {
    this.#options = options;
    this.#entries = new LRUCache({ max: options.entriesMax });
  }

  /** Starts polling for changes. Until then, every look-up goes to the database. */
  async start(): Promise<void> {
    await this.#ask();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** The entry in memory, if it can be trusted. Synchronous: the hot path waits for nothing. */
  peek(key: string): T | undefined {
    if (!this.#isTrusted) return undefined;
    // The order of use matters only when the cache is about to evict entries, and tracking it costs as much as
    // everything else here.
    const isRoomy = this.#entries.size * 2 < this.#options.entriesMax;
    return isRoomy ? this.#entries.peek(key) : this.#entries.get(key);
  }

  /** Changes when any row may have changed. Undefined while `peek` would find nothing, because the cache cannot be trusted. */
  get version(): number | undefined {
    return this.#isTrusted ? this.#version : undefined;
  }

  forget(key: string): void {
    this.#drop([key]);
  }

  /** Reads from the database. Keys requested in one turn of the event loop are read in one query. */
  async load(key: string): Promise<T | undefined> {
    this.#misses ??= this.#collect();
    this.#misses.keys.add(key);
    const rows = await this.#misses.rows;
    return rows.get(key);
  }

  #collect(): Misses<T> {
    const keys = new Set<string>();
    // One query at a time: misses that arrive meanwhile share the next one.
    const rows = Promise.all([this.#loading, nextTurn()]).then(async () => {
      this.#misses = undefined;
      const startedAt = performance.now();
      const found = await this.#options.load([...keys]);
      if (performance.now() - startedAt < LOAD_MS_MAX) {
        for (const [key, value] of found) this.#entries.set(key, value);
      }
      return found;
    });
    this.#loading = rows.catch(() => {});
    return { keys, rows };
  }

  get #isTrusted(): boolean {
    return performance.now() < this.#trustedUntil;
  }

  #drop(changed: readonly string[]): void {
    if (changed.length > 0) this.#version += 1;
    for (const key of changed) this.#entries.delete(key);
  }

  async #ask(): Promise<void> {
    const startedAt = performance.now();
    try {
      const changed = await this.#options.findChanged();
      this.#drop(changed);
      this.#trustedUntil = startedAt + this.#options.seenWithinMs * TRUST;
    } catch (error) {
      this.#options.onError(error);
    }
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => void this.#ask(), this.#options.seenWithinMs * ASK_EVERY);
    this.#timer.unref();
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
