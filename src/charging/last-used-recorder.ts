/** Collects in memory when keys were last used and writes the times together, outside the charge path. */
import type { Database } from '../store/database.ts';
import { touchKeys } from '../store/accounts/api-keys.ts';

const WRITE_EVERY_MS = 10_000;

export class LastUsedRecorder {
  readonly #database: Database;
  readonly #onError: (error: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  #used = new Set<string>();

  constructor(database: Database, onError: (error: unknown) => void) {
    this.#database = database;
    this.#onError = onError;
    this.#timer = setInterval(() => void this.write(), WRITE_EVERY_MS);
    this.#timer.unref();
  }

  add(keyId: string): void {
    this.#used.add(keyId);
  }

  async write(): Promise<void> {
    if (this.#used.size === 0) return;
    const ids = [...this.#used];
    this.#used = new Set();
    try {
      await touchKeys(this.#database, ids);
    } catch (error) {
      this.#onError(error);
    }
  }

  stop(): Promise<void> {
    clearInterval(this.#timer);
    return this.write();
  }
}
