/**
 * What changed recently, for everything that is kept in memory, by one query. Another process may change
 * rows, so this one asks several times within the time in which a change has to be seen, and memory can be
 * trusted only while the last answer is younger than that.
 */
import {
  LOOK_BACK_MS,
  type Change,
  type RecentChangesAnswer,
  type Writer,
} from '../store/recent-changes.ts';
import { RepeatedWork } from './repeated-work.ts';

/** Parts of the time in which a change has to be seen: two polls may fail, and timers may be late. */
const ASK_EVERY = 0.3;
const TRUST = 0.9;

/**
 * A revoked, rolled or closed key stops working, a new price is charged, an archived tool refused, and a
 * changed or closed budget heeded, in every process within this time.
 */
const SEEN_WITHIN_MS = 1_000;

/** A transaction that took longer may have given its rows a time that is too old to be looked at. */
const LONG_MS = LOOK_BACK_MS / 2;

/** Undefined: anything may have changed. */
export type Changes = readonly Change[] | undefined;

export class RecentChanges {
  readonly #find: (since: string | undefined) => Promise<RecentChangesAnswer>;
  readonly #onError: (error: unknown) => void;
  readonly #listeners: ((changes: Changes) => void)[] = [];
  #knownUntil = 0;
  /** The time of the last answer. */
  #since: string | undefined;
  /** The transactions that had not ended at the last answer. */
  #writers: readonly Writer[] = [];
  #asking: RepeatedWork | undefined;

  /**
   * `find` returns what may have changed since the time of the last answer, and nothing less: Postgres may
   * have been out of reach, or this process have stood still, for any time. More is harmless.
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
    const ask = () => this.#ask();
    await ask().catch(this.#onError);
    this.#asking = new RepeatedWork(SEEN_WITHIN_MS * ASK_EVERY, ask, this.#onError);
  }

  /** Resolves once the query in progress, if any, has ended. */
  async stop(): Promise<void> {
    await this.#asking?.stop();
  }

  /** Calls `listener` with the changes of each answer, if there are any. */
  onChange(listener: (changes: Changes) => void): void {
    this.#listeners.push(listener);
  }

  /** Whether the last answer is recent enough to trust what is remembered and was not reported as changed. */
  get areKnown(): boolean {
    return performance.now() < this.#knownUntil;
  }

  async #ask(): Promise<void> {
    const startedAt = performance.now();
    const answer = await this.#find(this.#since);
    const found = this.#hasLongWriterEnded(answer) ? undefined : answer.changes;
    if (found?.length !== 0) for (const listener of this.#listeners) listener(found);
    this.#since = answer.at;
    this.#writers = answer.writers;
    this.#knownUntil = startedAt + SEEN_WITHIN_MS * TRUST;
  }

  /**
   * Whether a transaction has ended that took long, for example because its commit waited for a disk. What it
   * changed can be seen only now.
   */
  #hasLongWriterEnded({ at, writers }: RecentChangesAnswer): boolean {
    const present = new Set(writers.map(({ id }) => id));
    const beganLongBefore = Date.parse(at) - LONG_MS;
    return this.#writers.some(
      ({ id, since }) => !present.has(id) && Date.parse(since) < beganLongBefore,
    );
  }
}
