/**
 * An invocation, until the agent has answered or its time is over. The attempts are made here and not by
 * Temporal's retries, so that an operator sees what each one met, and can have the next one now. What the
 * agent answers goes straight into Postgres, which also decides how the invocation has ended.
 */
import {
  ActivityFailure,
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  condition,
  continueAsNew,
  proxyActivities,
  rootCause,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { AgentActivities } from '../activities/agents.ts';
import type { InvocationActivities } from '../activities/invocations.ts';
import {
  agentTaskQueue,
  RETRY_MS_MAX,
  retryDelayMs,
  type InvocationView,
} from '../src/domain/invocation.ts';
import { display } from './invocation-display.ts';
import * as messages from './messages.ts';
import type { InvocationInput, InvocationProgress, Stuck } from './messages.ts';

type Step = 'begin' | 'call' | 'giveUp' | 'end';

interface Run {
  readonly invocationId: string;
  view: InvocationView;
  waitingFor: InvocationProgress['waitingFor'];
  stuck: Stuck | null;
  deadlineAtMs: number;
  attemptTimeoutMs: number;
  /** Steps in a row that failed. */
  failures: number;
  /** Waiting for the next attempt; no step is under way. */
  resting: boolean;
  retryAsked: boolean;
  cancelAsked: boolean;
  ended: boolean;
}

/** About 15 seconds of failing. */
const STUCK_AFTER = 5;
/** Further attempts come later than any caller waits. */
const ANSWERS_AFTER = 2;

export async function invocation(input: InvocationInput): Promise<InvocationView> {
  const run = newRun(input.invocationId);
  listen(run);
  CancellationScope.current().cancelRequested.catch(() => (run.cancelAsked = true));
  return CancellationScope.nonCancellable(async () => {
    let step: Step = 'begin';
    while (step !== 'end') {
      if (workflowInfo().continueAsNewSuggested && allHandlersFinished() && !run.cancelAsked) {
        await continueAsNew<typeof invocation>(input);
      }
      step = await attempt(run, step);
    }
    run.ended = true;
    run.stuck = null;
    run.waitingFor = null;
    display(run);
    await condition(allHandlersFinished);
    return run.view;
  });
}

/** Takes a step and returns the next one: the same again, after a while, when it failed. */
async function attempt(run: Run, planned: Exclude<Step, 'end'>): Promise<Step> {
  const step = planned === 'call' && isToEnd(run) ? 'giveUp' : planned;
  try {
    return await STEPS[step](run);
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    fail(run, step, error);
    await pause(run, step, error);
    return step;
  }
}

function isToEnd(run: Run): boolean {
  return run.cancelAsked || Date.now() >= run.deadlineAtMs;
}

const STEPS: Readonly<Record<Exclude<Step, 'end'>, (run: Run) => Promise<Step>>> = {
  async begin(run) {
    const begun = await inPostgres('Take up the invocation').beginInvocation(run.invocationId);
    const { status, attempts, error } = begun;
    run.view = { status, attempts, error };
    run.deadlineAtMs = Date.now() + begun.deadlineInMs;
    run.attemptTimeoutMs = begun.attemptTimeoutMs;
    run.failures = attempts;
    run.stuck = null;
    run.waitingFor = 'agent';
    if (status !== 'running') return 'end';
    display(run);
    return 'call';
  },

  async call(run) {
    run.view = { ...run.view, attempts: run.view.attempts + 1 };
    run.view = await toAgent(run).callAgent(run.invocationId);
    return 'end';
  },

  async giveUp(run) {
    const code = run.cancelAsked ? 'canceled' : 'deadline_exceeded';
    const summary = run.cancelAsked ? 'End it, as an operator asked' : 'Give up: its time is over';
    run.view = await inPostgres(summary).giveUpInvocation(run.invocationId, code);
    return 'end';
  },
};

/** One attempt each: the loop above repeats them. */
const ONCE = { maximumAttempts: 1 };

function inPostgres(summary: string): InvocationActivities {
  return proxyActivities<InvocationActivities>({
    startToCloseTimeout: '15s',
    retry: ONCE,
    summary,
  });
}

function toAgent(run: Run): AgentActivities {
  return proxyActivities<AgentActivities>({
    taskQueue: agentTaskQueue(workflowInfo().taskQueue),
    startToCloseTimeout: run.attemptTimeoutMs + 15_000,
    heartbeatTimeout: '10s',
    retry: ONCE,
    summary: `Attempt ${run.view.attempts}`,
  });
}

function fail(run: Run, step: Step, error: ActivityFailure): void {
  const { cause } = error;
  const message = rootCause(error) ?? error.message;
  const isAgents = cause instanceof ApplicationFailure && cause.type === 'agent_unavailable';
  if (isAgents) run.view = { ...run.view, error: { code: 'agent_unavailable', message } };
  run.failures += 1;
  run.waitingFor = isAgents ? 'agent' : 'database';
  if (run.failures >= STUCK_AFTER) {
    run.stuck = { step, since: run.stuck?.since ?? new Date().toISOString(), message };
  }
  display(run);
}

/** Until the next attempt is due, or asked for, or the invocation's time is over. */
async function pause(run: Run, step: Step, error: ActivityFailure): Promise<void> {
  const spread = retryDelayMs(run.failures, Math.random());
  const askedMs = Math.min(retryAfterMsOf(error), RETRY_MS_MAX);
  const leftMs = step === 'call' ? run.deadlineAtMs - Date.now() : Infinity;
  const delayMs = Math.max(Math.min(Math.max(spread, askedMs), leftMs), 1);
  run.resting = true;
  await condition(() => run.retryAsked || (run.cancelAsked && step !== 'giveUp'), delayMs, {
    summary: `Until attempt ${run.view.attempts + 1}`,
  });
  run.resting = false;
  run.retryAsked = false;
}

function retryAfterMsOf({ cause }: ActivityFailure): number {
  const [details] = cause instanceof ApplicationFailure ? (cause.details ?? []) : [];
  return (details as { retryAfterMs?: number } | undefined)?.retryAfterMs ?? 0;
}

function listen(run: Run): void {
  setHandler(
    messages.invocationOutcome,
    async () => {
      await condition(() => run.ended || run.failures >= ANSWERS_AFTER);
      return run.view;
    },
    { description: 'Answers when the invocation has ended, or will not soon.' },
  );
  setHandler(
    messages.invocationRetry,
    async () => {
      run.retryAsked = true;
      await condition(() => run.ended || (!run.retryAsked && run.resting));
      return progressOf(run);
    },
    { description: 'For operators: makes the next attempt now.' },
  );
  setHandler(messages.invocationStatus, () => progressOf(run), {
    description: 'The status, how many attempts there were, and what the last one met.',
  });
}

function newRun(invocationId: string): Run {
  return {
    invocationId,
    view: { status: 'pending', attempts: 0, error: null },
    waitingFor: 'database',
    stuck: null,
    deadlineAtMs: Infinity,
    attemptTimeoutMs: 0,
    failures: 0,
    resting: false,
    retryAsked: false,
    cancelAsked: false,
    ended: false,
  };
}

function progressOf(run: Run): InvocationProgress {
  return { ...run.view, waitingFor: run.waitingFor, stuck: run.stuck };
}
