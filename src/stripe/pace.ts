/** How quickly a deployment calls Stripe: the rate of its steps, and work on many top-ups, several at a time. */
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Steps that call Stripe take at most this long, so with a slot for each that may start meanwhile, none waits
 * for a slot while Stripe hangs.
 */
const STEP_SECONDS_MAX = 15;
/**
 * One step of a reconciliation compares many top-ups. With half the rate of steps and one call to each endpoint, they
 * need what other steps leave of Stripe's 25 calls per second and endpoint.
 */
const COMPARED_PER_STEP = 0.5;

/** Limits of the task queue of steps that call Stripe, which Temporal enforces over all workers. */
export function stripeQueueLimits(stepsPerSecond: number) {
  return {
    maxTaskQueueActivitiesPerSecond: stepsPerSecond,
    maxConcurrentActivityTaskExecutions: stepsPerSecond * STEP_SECONDS_MAX,
  };
}

/** Top-ups that a reconciliation compares per second. */
export function comparedPerSecond(stepsPerSecond: number): number {
  return stepsPerSecond * COMPARED_PER_STEP;
}

/** Gives out turns at a limited rate. An idle pace saves no turns. */
export class Pace {
  readonly #intervalMs: number;
  #nextMs = 0;

  constructor(perSecond: number) {
    this.#intervalMs = 1_000 / perSecond;
  }

  /** Resolves when the caller may start. */
  async turn(): Promise<void> {
    const nowMs = performance.now();
    const dueMs = Math.max(nowMs, this.#nextMs);
    this.#nextMs = dueMs + this.#intervalMs;
    // Timers drop fractions of a millisecond, which would be too early.
    if (dueMs > nowMs) await delay(Math.ceil(dueMs - nowMs));
  }
}

/**
 * Works on up to `atOnce` items at a time, each in its turn. After a failure it starts no more, and throws the first
 * error when all that it started have ended, so that a retry has the items for itself.
 */
export async function eachInTurn<T, R>(
  items: readonly T[],
  { pace, atOnce }: { readonly pace: Pace; readonly atOnce: number },
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = [];
  const errors: unknown[] = [];
  const left = items.values();
  const lane = async () => {
    for (const item of left) {
      await pace.turn();
      if (errors.length > 0) return;
      try {
        results.push(await work(item));
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  if (errors.length > 0) throw errors[0];
  return results;
}
