/**
 * Rolls up earnings in the API process while workers or Temporal are down for long, so that reads of the
 * tails stay quick. While the schedule runs, this finds nothing to do.
 */
import type { Database } from '../store/database.ts';
import { areTailsLong, rollUp } from '../store/earnings/rollups.ts';

const LOOK_EVERY_MS = 10_000;

export class RollupFallback {
  readonly #database: Database;
  readonly #onError: (error: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  #work: Promise<void> | undefined;
  #isStopped = false;

  constructor(database: Database, onError: (error: unknown) => void) {
    this.#database = database;
    this.#onError = onError;
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS);
    this.#timer.unref();
  }

  #look(): void {
    this.#work ??= this.#shorten()
      .catch(this.#onError)
      .finally(() => (this.#work = undefined));
  }

  async #shorten(): Promise<void> {
    if (!(await areTailsLong(this.#database))) return;
    while (!this.#isStopped && (await rollUp(this.#database)).hasMore);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    await this.#work;
  }
}
