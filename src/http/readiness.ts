/**
 * Whether charges can be taken, for which Postgres alone is needed. However many ask, there is one probe a
 * second: what is open to everybody must not load what charges need.
 */
import { isDatabaseUp, type Database } from '../store/database.ts';

/** A dependency that has not answered by then counts as down. */
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

  /** As of at most a second ago. */
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
