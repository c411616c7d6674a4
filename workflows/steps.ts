/**
 * How a workflow runs its steps: it repeats each until it succeeds, pauses after every failed attempt (an operator can
 * end the pause with `retry`), and shows `Stuck` after enough failures.
 */
import {
  ActivityFailure,
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  condition,
  isCancellation,
  patched,
  rootCause,
  TimeoutFailure,
  workflowInfo,
} from '@temporalio/workflow';
import { CUT_OFF } from '../src/domain/invocation.ts';
import type { Stuck, WaitingFor } from './messages.ts';

export interface Rules {
  /** Consecutive failures after which the workflow shows that it is stuck. */
  readonly stuckAfter: number;
  /** Called whenever an operator should see something new. */
  readonly display: () => void;
  /** Called before a step when the history is long. Starts a new run, so it never returns. */
  readonly beginAnew: (step: string) => Promise<never>;
  /** Waits until the step that failed is due again. */
  readonly pauseAfter: (step: string, failure: ActivityFailure) => Promise<void>;
  /** The longest step, where one may take more than the usual 90 s. */
  readonly stepMsMax?: () => number;
}

/** All attempts of a step, and the pauses between them, take 90 s (processor-steps.ts). */
const HEEDED_WITHIN_MS = 100_000;
/** How much longer than a step an update waits. */
const HEEDED_MARGIN_MS = 10_000;

export class Steps {
  /** The current step, or the next one. */
  step: string;
  waitingFor: WaitingFor | null;
  stuck: Stuck | null = null;
  /** Consecutive failed attempts. */
  failures = 0;
  /** In a pause: no step is running. */
  resting = false;
  /** A report or `retry` arrived: the pause ends, and the next step reads the current state. */
  woken = false;
  cancelAsked = false;
  ended = false;
  readonly #rules: Rules;

  constructor(first: string, waitingFor: WaitingFor, rules: Rules) {
    this.step = first;
    this.waitingFor = waitingFor;
    this.#rules = rules;
  }

  /** Runs a workflow so that "Request Cancellation" in the UI has the same effect as `cancel`. */
  orderly<T>(run: () => Promise<T>): Promise<T> {
    CancellationScope.current().cancelRequested.catch(() => (this.cancelAsked = true));
    return CancellationScope.nonCancellable(run);
  }

  /** Repeats the step until it succeeds. */
  async take<T>(step: string, act: () => Promise<T>): Promise<T> {
    for (;;) {
      const taken = await this.attempt(step, act);
      if (taken) return taken.value;
    }
  }

  /** Runs the step once. Undefined: it failed, and the pause after the failure is over. */
  async attempt<T>(
    step: string,
    act: () => Promise<T>,
  ): Promise<{ readonly value: T } | undefined> {
    if (this.#mayBeginAnew(step)) await this.#rules.beginAnew(step);
    this.step = step;
    try {
      const value = await act();
      this.failures = 0;
      this.stuck = null;
      return { value };
    } catch (error) {
      if (!(error instanceof ActivityFailure)) throw error;
      this.#fail(step, error);
      await this.#rules.pauseAfter(step, error);
      return undefined;
    }
  }

  /** Waits until `isOver` or the timeout. False: it timed out. */
  async pause(timeoutMs: number, summary: string, isOver: () => boolean): Promise<boolean> {
    this.resting = true;
    const isEarly = await condition(isOver, timeoutMs, { summary });
    this.resting = false;
    return isEarly;
  }

  /**
   * For updates: waits until the request has been carried out, or has led to another pause. Not for longer
   * than any step takes: it is carried out later, and if nothing has failed meanwhile, no worker has taken
   * the step.
   */
  async untilHeeded(asked: 'woken' | 'cancelAsked'): Promise<void> {
    this[asked] = true;
    const isHeeded = () => this.ended || (!this[asked] && this.resting);
    // Runs that began on an earlier release wait without a limit.
    if (!patched('bounded-updates')) return condition(isHeeded);
    const longestMs = (this.#rules.stepMsMax?.() ?? 0) + HEEDED_MARGIN_MS;
    const withinMs = Math.max(HEEDED_WITHIN_MS, longestMs);
    const isInTime = await lasting(() => condition(isHeeded, withinMs));
    if (isInTime || this.resting || this.failures > 0) return;
    this.waitingFor = 'worker';
    this.display();
  }

  display(): void {
    this.#rules.display();
  }

  /** Shows that the workflow has ended, and waits until all updates are answered. */
  async end(): Promise<void> {
    this.ended = true;
    this.stuck = null;
    this.waitingFor = null;
    this.display();
    await condition(allHandlersFinished);
  }

  resume(): void {
    this.ended = false;
    this.woken = false;
  }

  /** A new run does not inherit the messages that this one received. */
  #mayBeginAnew(step: string): boolean {
    const isTold = this.woken || this.cancelAsked || step === 'cancel';
    return workflowInfo().continueAsNewSuggested && !isTold && allHandlersFinished();
  }

  #fail(step: string, failure: ActivityFailure): void {
    if (!isCutOff(failure)) this.failures += 1;
    this.waitingFor = partyOf(failure);
    if (this.failures >= this.#rules.stuckAfter) {
      const since = this.stuck?.since ?? new Date().toISOString();
      this.stuck = { step, since, message: rootCause(failure) ?? failure.message };
    }
    this.display();
  }
}

/**
 * Continues to wait when the cancellation of the workflow is requested: the workflow ends in order, and updates outlast
 * the request.
 */
export async function lasting<T>(wait: () => Promise<T>): Promise<T> {
  try {
    return await wait();
  } catch (error) {
    // Updates of runs of earlier releases failed then.
    if (!isCancellation(error) || !patched('updates-outlast-cancellation')) throw error;
    return CancellationScope.nonCancellable(wait);
  }
}

/** Whether the step ended only because its worker stopped. */
function isCutOff({ cause }: ActivityFailure): boolean {
  return cause instanceof ApplicationFailure && cause.type === CUT_OFF;
}

/** Who has to act before the step can succeed, from the type of the activity's failure. */
function partyOf(failure: ActivityFailure): WaitingFor {
  const { cause } = failure;
  if (cause instanceof TimeoutFailure || isCutOff(failure)) return 'worker';
  const type = cause instanceof ApplicationFailure ? cause.type : undefined;
  if (type === 'service_unavailable' || type === 'not_shown') return 'processor';
  if (type === 'payment_mismatch') return 'operator';
  return type === 'agent_unavailable' ? 'agent' : 'database';
}

/** The `Retry-After` of the party that failed, or 0. */
export function retryAfterMsOf({ cause }: ActivityFailure): number {
  const [details] = cause instanceof ApplicationFailure ? (cause.details ?? []) : [];
  return (details as { readonly retryAfterMs?: number } | undefined)?.retryAfterMs ?? 0;
}
