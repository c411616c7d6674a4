/** Collects in memory when keys were last used and writes the times together, outside the charge path. */
import type { Database } from '../store/database.ts';
import { touchKeys, type KeyOwner } from '../store/accounts/api-keys.ts';
import { RepeatedWork } from './repeated-work.ts';

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
  readonly #rounds: RepeatedWork;
  #used = new Set<string>();
  /** Counts the rounds. A key that was never noted counts as noted in round 0, long enough ago. */
  #round = ROUNDS_APART;
  /** Settles when the last write does. */
  #written: Promise<void> = Promise.resolve();

  constructor(database: Database, onError: (error: unknown) => void) {
    this.#database = database;
    this.#onError = onError;
    this.#rounds = new RepeatedWork(WRITE_EVERY_MS, () => this.endRound(), onError);
  }

  add(key: UsedKey): void {
    if (this.#round - (key.notedIn ?? 0) < ROUNDS_APART) return;
    key.notedIn = this.#round;
    this.#used.add(key.keyId);
  }

  endRound(): Promise<void> {
    this.#round += 1;
    return this.flush();
  }

  /**
   * Writes at once, so that a list of keys shows a key that this process has just accepted as used. Resolves after the
   * attempt; a failure is reported to `onError`, and its keys are noted again in a later round.
   */
  flush(): Promise<void> {
    this.#written = this.#written.then(() => this.#write()).catch(this.#onError);
    return this.#written;
  }

  /** Writes what is left. */
  stop(): Promise<void> {
    return this.#rounds.finish();
  }

  async #write(): Promise<void> {
    if (this.#used.size === 0) return;
    const ids = [...this.#used];
    this.#used = new Set();
    await touchKeys(this.#database, ids);
  }
}
