/** Collects in memory when keys were last used and writes the times together, outside the charge path. */
import type { Database } from '../store/database.ts';
import { touchKeys, type KeyOwner } from '../store/accounts/api-keys.ts';

const WRITE_EVERY_MS = 10_000;
/** `touchKeys` writes a key's time once a minute. A key that was noted is noted again only after that minute. */
const ROUNDS_APART = 7;

/**
 * The key in memory keeps when it was noted, because looking its id up in a set would cost each charge a
 * microsecond.
 */
type UsedKey = Pick<KeyOwner, 'keyId' | 'notedIn'>;

export class LastUsedRecorder {
  readonly #database: Database;
  readonly #onError: (error: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  #used = new Set<string>();
  /** Counts the writes. A key that was never noted counts as noted in round 0, long enough ago. */
  #round = ROUNDS_APART;

  constructor(database: Database, onError: (error: unknown) => void) {
    this.#database = database;
    this.#onError = onError;
    this.#timer = setInterval(() => void this.write(), WRITE_EVERY_MS);
    this.#timer.unref();
  }

  add(key: UsedKey): void {
    if (this.#round - (key.notedIn ?? 0) < ROUNDS_APART) return;
    key.notedIn = this.#round;
    this.#used.add(key.keyId);
  }

  async write(): Promise<void> {
    this.#round += 1;
    await this.flush();
  }

  /**
   * Without waiting for the next round, so that a list of keys shows a key that this process has just
   * accepted as used.
   */
  async flush(): Promise<void> {
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
