/**
 * The time according to Postgres' clock. An idempotency key is searched among the charges of all API processes by time,
 * so a process whose clock is wrong must not charge: other processes would not find its charges, or it would not find
 * theirs, and a retry would charge twice.
 */
import { readClockAndArchive } from '../store/charges/archived.ts';
import type { Database } from '../store/database.ts';
import { CLOCK_JUMP_MS_MAX, CLOCK_SKEW_MS_MAX } from './limits.ts';
import { RepeatedWork } from './repeated-work.ts';

const MEASURE_EVERY_MS = 1_000;

/** How much a clock may lose between two readings because it drifts or is slewed. Then no time comes twice. */
const DRIFT_MS_MAX = 500;

/** The first measured time is wrong by this at the most. Longer than the pool lets a statement take. */
const READ_MS_MAX = 10_000;

/** This process does not know the time well enough to charge, or to look up what was charged before. */
export abstract class ClockError extends Error {}

/** This machine's clock differs from Postgres' by more than charges allow. */
export class ClockSkewError extends ClockError {
  override readonly name = 'ClockSkewError';

  constructor(skewMs: number) {
    const seconds = Math.round(Math.abs(skewMs) / 1_000);
    const direction = skewMs > 0 ? 'ahead of' : 'behind';
    super(
      `The clock of this machine is ${seconds} s ${direction} the clock of Postgres. ` +
        `Synchronize the clocks: they may differ by at most ${CLOCK_SKEW_MS_MAX / 1_000} s.`,
    );
  }
}

/**
 * This machine was suspended, which `performance.now()` does not count, or its clock was set, since Postgres' clock was
 * read. A charge would get the time of the suspension, behind charges that other processes made since.
 */
export class ClockJumpError extends ClockError {
  override readonly name = 'ClockJumpError';

  constructor(jumpMs: number) {
    super(
      `This machine was suspended, or its clock was set, by ${Math.round(Math.abs(jumpMs) / 1_000)} s. ` +
        'It charges again when it has read the clock of Postgres, within a second.',
    );
  }
}

/**
 * PostgreSQL's clock is months behind, in a month that is archived. A charge with that time would be missing
 * from the month's sums, and nobody could list or refund it.
 */
export class ClockArchivedError extends ClockError {
  override readonly name = 'ClockArchivedError';

  constructor(nowMs: number, archivedBeforeMs: number) {
    super(
      `The clock of Postgres says ${new Date(nowMs).toISOString()}, but everything before ` +
        `${new Date(archivedBeforeMs).toISOString()} is archived. Correct the clock.`,
    );
  }
}

export class DatabaseClock {
  readonly #database: Database;
  readonly #onError: (error: unknown) => void;
  #measuring: RepeatedWork | undefined;
  /** Postgres' time minus `performance.now()`, which changes of the machine's clock do not affect. */
  #offsetMs = 0;
  /** This machine's time minus `performance.now()`, when Postgres was asked. */
  #ownOffsetMs = 0;
  /** By how much Postgres' clock was set back since the listener was last called. Several short steps add up. */
  #setBackMs = 0;
  #onSetBack: ((byMs: number) => void) | undefined;
  /** The end of the archived months, as of the last reading. */
  #archivedBeforeMs = 0;
  /** Whether the last reading showed that one of the clocks is wrong. */
  #isWrong = false;

  constructor(database: Database, onError: (error: unknown) => void) {
    this.#database = database;
    this.#onError = onError;
  }

  /** Throws a ClockError when a clock is wrong. */
  async start(): Promise<void> {
    const measure = () => this.#measure();
    await measure();
    this.checkedNowMs();
    this.#measuring = new RepeatedWork(MEASURE_EVERY_MS, measure, this.#onError);
  }

  /** Resolves once the reading in progress, if any, has ended. */
  async stop(): Promise<void> {
    await this.#measuring?.stop();
  }

  /**
   * Calls `listener` after a reading that shows that Postgres' clock was set back, at once or in steps, so
   * that times come twice.
   */
  onSetBack(listener: (byMs: number) => void): void {
    this.#onSetBack = listener;
  }

  /**
   * Postgres' time in whole milliseconds, for expiries that are stored and for times in responses, so that
   * all processes agree. After a suspension, it is behind until Postgres' clock has been read, within a
   * second.
   */
  nowMs(): number {
    return Math.floor(this.#offsetMs + performance.now());
  }

  /**
   * For the times of charges. Throws a ClockSkewError when this machine's clock is too far from it, a
   * ClockJumpError until Postgres' clock has been read after a jump, and a ClockArchivedError in an archived month.
   */
  checkedNowMs(): number {
    const monotonicMs = performance.now();
    const ownMs = Date.now();
    const nowMs = this.#offsetMs + monotonicMs;
    const skewMs = ownMs - nowMs;
    if (Math.abs(skewMs) > CLOCK_SKEW_MS_MAX) throw new ClockSkewError(skewMs);
    const jumpMs = ownMs - monotonicMs - this.#ownOffsetMs;
    if (Math.abs(jumpMs) > CLOCK_JUMP_MS_MAX) throw new ClockJumpError(jumpMs);
    if (nowMs < this.#archivedBeforeMs) throw new ClockArchivedError(nowMs, this.#archivedBeforeMs);
    return nowMs;
  }

  async #measure(): Promise<void> {
    const askedAt = performance.now();
    // Before the answer, so that a jump while it is on its way is noticed, too.
    const ownOffsetMs = Date.now() - askedAt;
    const { nowMs: databaseMs, archivedBeforeMs } = await readClockAndArchive(this.#database);
    const answeredAt = performance.now();
    if (answeredAt - askedAt > READ_MS_MAX) {
      throw new Error('This process stood still while it read the clock of Postgres.');
    }
    // Postgres' time, in whole milliseconds, may be that of any moment in between. The offset moves only if
    // it cannot be right: otherwise it would go back after an answer that took long, and a charge would get
    // an earlier time than the last one.
    const lowestMs = databaseMs - answeredAt;
    const highestMs = databaseMs + 1 - askedAt;
    const offsetMs = Math.min(Math.max(this.#offsetMs, lowestMs), highestMs);
    this.#tellSetBack(this.#offsetMs - offsetMs);
    this.#offsetMs = offsetMs;
    this.#ownOffsetMs = ownOffsetMs;
    this.#archivedBeforeMs = archivedBeforeMs;
    this.#tellWrong();
  }

  /** `byMs` is the time that Postgres' clock lost between two readings. */
  #tellSetBack(byMs: number): void {
    if (byMs > DRIFT_MS_MAX) this.#setBackMs += byMs;
    if (this.#setBackMs <= CLOCK_JUMP_MS_MAX) return;
    this.#onSetBack?.(this.#setBackMs);
    this.#setBackMs = 0;
  }

  /**
   * Logs it once, because a load balancer may send this process nothing from now on, and then no request
   * would fail.
   */
  #tellWrong(): void {
    let error: unknown;
    try {
      this.checkedNowMs();
    } catch (thrown) {
      error = thrown;
    }
    // If the clock jumped during this reading, the next reading decides.
    if (error instanceof ClockJumpError) return;
    if (error !== undefined && !this.#isWrong) this.#onError(error);
    this.#isWrong = error !== undefined;
  }
}
