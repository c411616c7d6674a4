/**
 * Whether charges can be taken, which needs only Postgres and a clock that agrees with it. There is at most
 * one probe a second for any number of callers: an endpoint that is open to everybody must not load the
 * database that charges need.
 */
import { answerWithin } from '../give-up-after.ts';
import { ClockError, type DatabaseClock } from '../charging/database-clock.ts';
import { readServerState, type Database, type ServerState } from '../store/database.ts';
import type { TemporalState } from '../temporal/namespace.ts';

/** A dependency that does not answer in this time counts as down. */
const PROBE_TIMEOUT_MS = 1_000;
/** Longer, because the deadline of a call counts the time that this process stood still. */
const CALL_TIMEOUT_MS = 10_000;
const FRESH_MS = 1_000;

export interface ReadinessReport {
  /** `down` when it does not answer. Charges can be taken only when it is `up`. */
  readonly postgres: ServerState | 'down';
  /**
   * `wrong` when this machine's clock is too far from Postgres' clock or has just jumped, or when Postgres'
   * clock is in an archived month. No charges are made then.
   */
  readonly clock: 'right' | 'wrong';
  /** `no_namespace` when it does not have the namespace of the settings. */
  readonly temporal: TemporalState;
}

/** Whether charges can be taken. Temporal's state is informational. */
export function canCharge({ postgres, clock }: ReadinessReport): boolean {
  return postgres === 'up' && clock === 'right';
}

export class Readiness {
  readonly #database: Database;
  readonly #clock: DatabaseClock;
  readonly #readTemporal: (timeoutMs: number) => Promise<TemporalState>;
  #report: Promise<ReadinessReport> | undefined;
  #freshUntil = 0;

  constructor(
    database: Database,
    clock: DatabaseClock,
    readTemporal: (timeoutMs: number) => Promise<TemporalState>,
  ) {
    this.#database = database;
    this.#clock = clock;
    this.#readTemporal = readTemporal;
  }

  /** At most one second old. */
  check(): Promise<ReadinessReport> {
    const now = performance.now();
    if (!this.#report || now >= this.#freshUntil) {
      this.#freshUntil = now + FRESH_MS;
      this.#report = this.#probe();
    }
    return this.#report;
  }

  async #probe(): Promise<ReadinessReport> {
    const [postgres, temporal] = await Promise.all([
      answerWithin(PROBE_TIMEOUT_MS, readServerState(this.#database)),
      answerWithin(PROBE_TIMEOUT_MS, this.#readTemporal(CALL_TIMEOUT_MS)),
    ]);
    return {
      postgres: postgres ?? 'down',
      clock: isRight(this.#clock) ? 'right' : 'wrong',
      temporal: temporal ?? 'down',
    };
  }
}

function isRight(clock: DatabaseClock): boolean {
  try {
    clock.checkedNowMs();
    return true;
  } catch (error) {
    if (error instanceof ClockError) return false;
    throw error;
  }
}
