/**
 * The time according to Postgres' clock. An idempotency key is searched among the charges of all API processes by time,
 * so a process whose clock is wrong must not charge: other processes would not find its charges, or it would not find
 * theirs, and a retry would charge twice.
 */
import { readClock, type Database } from '../store/database.ts';
import { CLOCK_SKEW_MS_MAX } from './limits.ts';

const MEASURE_EVERY_MS = 1_000;

/** This machine's clock differs from Postgres' by more than charges allow. */
export class ClockSkewError extends Error {
  override readonly name = 'ClockSkewError';

  constructor(skewMs: number) {
    const seconds = Math.round(Math.abs(skewMs) / 1_000);
    const direction = skewMs > 0 ? 'ahead of' : 'behind';
    super(
      `The clock of this machine is ${seconds} s ${direction} the clock of Postgres. ` +
        `Synchronize them: at most ${CLOCK_SKEW_MS_MAX / 1_000} s are allowed.`,
    );
  }
}

export class DatabaseClock {
  readonly #database: Database;
  readonly #onError: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;
  /** Postgres' time minus `performance.now()`, which changes of the machine's clock do not affect. */
  #offsetMs = 0;

  constructor(database: Database, onError: (error: unknown) => void) {
    this.#database = database;
    this.#onError = onError;
  }

  /** Throws a ClockSkewError when the clocks differ too much. */
  async start(): Promise<void> {
    await this.#measure();
    this.checkedNowMs();
    this.#measureLater();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** Postgres' time in milliseconds. Throws a ClockSkewError when this machine's clock is too far from it. */
  checkedNowMs(): number {
    const nowMs = this.#offsetMs + performance.now();
    const skewMs = Date.now() - nowMs;
    if (Math.abs(skewMs) > CLOCK_SKEW_MS_MAX) throw new ClockSkewError(skewMs);
    return nowMs;
  }

  async #measure(): Promise<void> {
    const askedAt = performance.now();
    const databaseMs = await readClock(this.#database);
    this.#offsetMs = databaseMs - (askedAt + performance.now()) / 2;
  }

  #measureLater(): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      void this.#measure()
        .catch(this.#onError)
        .finally(() => this.#measureLater());
    }, MEASURE_EVERY_MS);
    this.#timer.unref();
  }
}
