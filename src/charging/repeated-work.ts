/** Work that a process repeats in the background: one run at a time, until it is stopped. */

export class RepeatedWork {
  readonly #run: (isStopped: () => boolean) => Promise<void>;
  readonly #onError: (error: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  #running: Promise<void> | undefined;
  #isStopped = false;

  /** `run` checks `isStopped` between its steps. A failed run is reported, and the next one starts on time. */
  constructor(
    everyMs: number,
    run: (isStopped: () => boolean) => Promise<void>,
    onError: (error: unknown) => void,
  ) {
    this.#run = run;
    this.#onError = onError;
    this.#timer = setInterval(() => void this.#start(), everyMs);
    this.#timer.unref();
  }

  #start(): Promise<void> {
    this.#running ??= this.#run(() => this.#isStopped)
      .catch(this.#onError)
      .finally(() => (this.#running = undefined));
    return this.#running;
  }

  /** Resolves once the current run, if any, has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  /** Stops, then runs once more, for work that writes what was gathered. */
  async finish(): Promise<void> {
    await this.stop();
    await this.#start();
  }
}
