/**
 * Whether charges can be taken, which needs only Postgres. There is at most one probe a second for any number of
 * callers: an endpoint that is open to everybody must not load the database that charges need.
 */
import { isDatabaseUp, type Database } from '../store/database.ts';

/** A dependency that does not answer in this time counts as down. */
const PROBE_TIMEOUT_MS = 1_000;
const FRESH_MS = 1_000;

export interface ReadinessReport {
  readonly isPostgresUp: boolean;
  readonly isTemporalUp: boolean;
}

export class Readiness {
  readonly #database: Database;
  readonly #isTemporalUp: () => Promise<boolean>;
  #report: Promise<ReadinessReport> | undefined;
  #freshUntil = 0;

  constructor(database: Database, isTemporalUp: () => Promise<boolean>) {
    this.#database = database;
    this.#isTemporalUp = isTemporalUp;
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
    const [isPostgresUp, isTemporalUp] = await Promise.all([
      inTime(isDatabaseUp(this.#database)),
      inTime(this.#isTemporalUp()),
    ]);
    return { isPostgresUp, isTemporalUp };
  }
}

async function inTime(probe: Promise<boolean>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), PROBE_TIMEOUT_MS);
  });
  try {
    return await Promise.race([probe.catch(() => false), timeout]);
  } finally {
    clearTimeout(timer);
  }
}
