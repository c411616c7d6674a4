/**
 * A supervised child process of the start. When it ends unasked, it is restarted, at first after a second,
 * then after delays that double up to five seconds while it keeps ending. So charging is back within ten
 * seconds if PostgreSQL is killed again and again.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Child } from './child.ts';

const BACKOFF_MS_MIN = 1_000;
const BACKOFF_MS_MAX = 5_000;
/** A child that ran this long counts as healthy: the delay starts at the beginning again. */
const HEALTHY_MS = 60_000;

/** Waits before a restart. Rejects as soon as the signal is aborted. */
type Wait = (ms: number, signal: AbortSignal) => Promise<void>;

const waitFor: Wait = (ms, signal) => delay(ms, undefined, { signal });

export class SupervisedChild<T extends Child = Child> {
  readonly #start: () => Promise<T>;
  readonly #log: (line: string) => void;
  readonly #wait: Wait;
  readonly #healthyMs: number;
  readonly #stopping = new AbortController();
  #starting: Promise<T> | undefined;
  #child: T | undefined;
  #watching: Promise<void> = Promise.resolve();

  constructor(
    start: () => Promise<T>,
    log: (line: string) => void,
    { wait = waitFor, healthyMs = HEALTHY_MS } = {},
  ) {
    this.#start = start;
    this.#log = log;
    this.#wait = wait;
    this.#healthyMs = healthyMs;
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
      if (performance.now() - startedAt > this.#healthyMs) backoffMs = BACKOFF_MS_MIN;
      this.#log(`${child.name} ended (${how}); starting it again`);
      let next: T | undefined;
      while (!next) {
        await this.#wait(backoffMs, this.#stopping.signal).catch(() => {});
        if (this.#stopping.signal.aborted) return;
        backoffMs = Math.min(backoffMs * 2, BACKOFF_MS_MAX);
        next = await this.#tryToStart(child.name);
      }
      child = next;
    }
  }

  /** Undefined when it failed. A child that was asked to stop while it was starting has ended. */
  async #tryToStart(name: string): Promise<T | undefined> {
    try {
      this.#child = await this.#start();
      this.#log(`${name} is running again`);
      if (this.#stopping.signal.aborted) await this.#child.stop();
      return this.#child;
    } catch (error) {
      this.#log((error as Error).message);
      return undefined;
    }
  }
}
