/**
 * What changed recently, for everything that is kept in memory, by one query. Another process may change rows, so this one
 * asks several times within the time in which a change has to be seen, and memory can be trusted only while the last
 * answer is younger than that.
 */
import type { Change, RecentChangesAnswer } from '../store/recent-changes.ts';

/** Parts of the time in which a change has to be seen: two polls may fail, and timers may be late. */
const ASK_EVERY = 0.3;
const TRUST = 0.9;

/**
 * A revoked, rolled or closed key stops working, a new price is charged, an archived tool refused, and a changed or closed
 * budget heeded, in every process within this time.
 */
const SEEN_WITHIN_MS = 1_000;

export class RecentChanges {
  readonly #find: (since: string | undefined) => Promise<RecentChangesAnswer>;
  readonly #onError: (error: unknown) => void;
  readonly #listeners: ((changes: readonly Change[]) => void)[] = [];
  #knownUntil = 0;
  /** The time of the last answer. */
  #since: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  /**
   * `find` returns what may have changed since the time of the last answer, and nothing less: Postgres may have been out
   * of reach, or this process have stood still, for any time. More is harmless.
   */
  constructor(
    find: (since: string | undefined) => Promise<RecentChangesAnswer>,
    onError: (error: unknown) => void,
  ) {
    this.#find = find;
    this.#onError = onError;
  }

  /** Begins to ask. Until the first answer, `areKnown` is false. */
  async start(): Promise<void> {
    await this.#ask();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** Calls `listener` with the changes of each answer, if there are any. */
  onChange(listener: (changes: readonly Change[]) => void): void {
    this.#listeners.push(listener);
  }

  /** Whether the last answer is young enough to trust what no change was reported of. */
  get areKnown(): boolean {
    return performance.now() < this.#knownUntil;
  }

  async #ask(): Promise<void> {
    const startedAt = performance.now();
    try {
      const { changes, at } = await this.#find(this.#since);
      if (changes.length > 0) for (const listener of this.#listeners) listener(changes);
      this.#since = at;
      this.#knownUntil = startedAt + SEEN_WITHIN_MS * TRUST;
    } catch (error) {
      this.#onError(error);
    }
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => void this.#ask(), SEEN_WITHIN_MS * ASK_EVERY);
    this.#timer.unref();
  }
}
