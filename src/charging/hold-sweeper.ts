/**
 * Gives back what expired holds reserve, each second, in the worker. Any number of workers do it at once, and one that is
 * killed leaves nothing half done. The workflow `expireHolds` is the net under it.
 */
import type { Database } from '../store/database.ts';
import { expireHolds } from '../store/holds/expire-holds.ts';

const SWEEP_EVERY_MS = 1_000;

export class HoldSweeper {
  readonly #database: Database;
  readonly #onError: (error: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  #work: Promise<void> | undefined;
  #isStopped = false;

  constructor(database: Database, onError: (error: unknown) => void) {
    this.#database = database;
    this.#onError = onError;
    this.#timer = setInterval(() => this.#look(), SWEEP_EVERY_MS);
    this.#timer.unref();
  }

  #look(): void {
    this.#work ??= this.#sweep()
      .catch(this.#onError)
      .finally(() => (this.#work = undefined));
  }

  async #sweep(): Promise<void> {
    while (!this.#isStopped && (await expireHolds(this.#database)).hasMore);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    await this.#work;
  }
}
