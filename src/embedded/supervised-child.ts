/**
 * A supervised child process of the start. When it ends unasked, it is restarted, at first after a second, then after delays that
 * double up to five seconds while it keeps ending. So charging is back within ten seconds if PostgreSQL is killed again and again.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Child } from './child.ts';

const BACKOFF_MS_MIN = 1_000;
const BACKOFF_MS_MAX = 5_000;
/** A child that ran this long counts as healthy: the delay starts at the beginning again. */
const HEALTHY_MS = 60_000;

export class SupervisedChild<T extends Child = Child> {
  readonly #start: () => Promise<T>;
  readonly #log: (line: string) => void;
  readonly #stopping = new AbortController();
  #starting: Promise<T> | undefined;
  #child: T | undefined;
  #watching: Promise<void> = Promise.resolve();

  constructor(start: () => Promise<T>, log: (line: string) => void) {
    this.#start = start;
    this.#log = log;
  }

  /** The first start. Failures are the caller's to handle. */
  async start(): Promise<T> {
    this.#starting = this.#start();
    this.#child = await this.#starting;
    this.#watching = this.#watch(this.#child);
    return this.#child;
  }

  /** Resolves once it has ended and will not be restarted. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const first = await this.#starting?.catch(() => undefined);
    await (this.#child ?? first)?.stop();
    await this.#watching;
  }

  kill(): void {
    this.#stopping.abort();
    this.#child?.kill('SIGKILL');
  }

  async #watch(first: T): Promise<void> {
    let child = first;
    let backoffMs = BACKOFF_MS_MIN;
    for (;;) {
      const startedAt = performance.now();
      const how = await child.exited;
      if (this.#stopping.signal.aborted) return;
      if (performance.now() - startedAt > HEALTHY_MS) backoffMs = BACKOFF_MS_MIN;
      this.#log(`${child.name} ended (${how}); starting it again`);
      const next = await this.#restart(child.name, backoffMs);
      if (!next) return;
      backoffMs = Math.min(backoffMs * 2, BACKOFF_MS_MAX);
      child = next;
    }
  }

  /** Repeats until it succeeds or is asked to stop. */
  async #restart(name: string, firstBackoffMs: number): Promise<T | undefined> {
    const { signal } = this.#stopping;
    for (let backoffMs = firstBackoffMs; ; backoffMs = Math.min(backoffMs * 2, BACKOFF_MS_MAX)) {
      await delay(backoffMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) return undefined;
      try {
        this.#child = await this.#start();
        this.#log(`${name} is running again`);
        // It may have been asked to stop while it was starting.
        if (!signal.aborted) return this.#child;
        await this.#child.stop();
        return undefined;
      } catch (error) {
        this.#log((error as Error).message);
      }
    }
  }
}
