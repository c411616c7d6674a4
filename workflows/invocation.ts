/**
 * An invocation, until the agent answers or the deadline passes. The attempts are made here and not by Temporal's
 * retries, so that an operator sees each error and can start the next attempt now. The agent's answer goes straight
 * into Postgres, which also decides how the invocation ended.
 */
import {
  ActivityFailure,
  ApplicationFailure,
  condition,
  continueAsNew,
  proxyActivities,
  setHandler,
  TimeoutFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { InvocationAttemptActivities } from '../activities/invocation-attempts.ts';
import type { InvocationActivities } from '../activities/invocations.ts';
import {
  CUT_OFF,
  RETRY_MS_MAX,
  retryDelayMs,
  type AgentTask,
  type InvocationView,
} from '../src/domain/invocation.ts';
import { agentTaskQueue, busyAgentTaskQueue } from '../src/domain/task-queues.ts';
import { display } from './invocation-display.ts';
import * as messages from './messages.ts';
import type { InvocationInput, InvocationProgress } from './messages.ts';
import { lasting, retryAfterMsOf, Steps } from './steps.ts';

interface Run {
  readonly invocationId: string;
  readonly steps: Steps;
  view: InvocationView;
  deadlineAtMs: number;
  attemptTimeoutMs: number;
  /** What the agent began in an earlier attempt. */
  task: AgentTask | undefined;
}

/** About 15 seconds of failing. */
const STUCK_AFTER = 5;
/** Later attempts start after every caller has stopped waiting. */
const ANSWERS_AFTER = 2;

export async function invocation(input: InvocationInput): Promise<InvocationView> {
  const run = newRun(input);
  listen(run);
  const { steps } = run;
  return steps.orderly(async () => {
    await steps.take('begin', () => begin(run));
    if (run.view.status === 'running') {
      // Attempts of earlier runs count too, since they all measure the agent.
      steps.failures = run.view.attempts;
      steps.waitingFor = 'agent';
      steps.display();
      while (!(await callOrGiveUp(run)));
    }
    await steps.end();
    return run.view;
  });
}

async function begin(run: Run): Promise<void> {
  const begun = await inPostgres('Claim the invocation').beginInvocation(run.invocationId);
  const { status, attempts, error } = begun;
  run.view = { status, attempts, error };
  run.deadlineAtMs = Date.now() + begun.deadlineInMs;
  run.attemptTimeoutMs = begun.attemptTimeoutMs;
}

/** Whether the invocation has ended. */
async function callOrGiveUp(run: Run): Promise<boolean> {
  const { steps, deadlineAtMs } = run;
  const isToEnd = steps.cancelAsked || Date.now() >= deadlineAtMs;
  const taken = isToEnd
    ? await steps.attempt('giveUp', () => giveUp(run))
    : await steps.attempt('call', () => call(run));
  return taken !== undefined;
}

async function call(run: Run): Promise<void> {
  run.view = { ...run.view, attempts: run.view.attempts + 1 };
  try {
    run.view =
      (await toAgent(run, agentTaskQueue).callAgent(run.invocationId, run.task)) ??
      (await toAgent(run, busyAgentTaskQueue).callAgentBeyondShare(run.invocationId, run.task));
  } catch (error) {
    noteFailedAttempt(run, error);
    throw error;
  }
}

function noteFailedAttempt(run: Run, error: unknown): void {
  const cause = error instanceof ActivityFailure ? error.cause : undefined;
  run.task = taskOf(cause) ?? run.task;
  if (!(cause instanceof ApplicationFailure)) return;
  if (cause.type === CUT_OFF) run.view = { ...run.view, attempts: run.view.attempts - 1 };
  if (cause.type !== 'agent_unavailable') return;
  run.view = { ...run.view, error: { code: 'agent_unavailable', message: cause.message } };
}

/** From the failure of an attempt, or from the last heartbeat of one whose worker died. */
function taskOf(cause: Error | undefined): AgentTask | undefined {
  const details: unknown =
    cause instanceof TimeoutFailure
      ? cause.lastHeartbeatDetails
      : cause instanceof ApplicationFailure && cause.details?.[0];
  return (details as { readonly task?: AgentTask } | null | undefined)?.task;
}

async function giveUp(run: Run): Promise<void> {
  const { cancelAsked } = run.steps;
  const code = cancelAsked ? 'canceled' : 'deadline_exceeded';
  const summary = cancelAsked
    ? 'End it at the request of an operator'
    : 'Give up: the deadline has passed';
  run.view = await inPostgres(summary).giveUpInvocation(run.invocationId, code);
}

/** One attempt each: the loop above repeats them. */
const ONCE = { maximumAttempts: 1 };

function inPostgres(summary: string): InvocationActivities {
  return proxyActivities<InvocationActivities>({
    startToCloseTimeout: '15s',
    heartbeatTimeout: '5s',
    retry: ONCE,
    summary,
  });
}

function attemptMsMax({ attemptTimeoutMs }: Run): number {
  return attemptTimeoutMs + 15_000;
}

/** Waits for a worker until the deadline at most. */
function toAgent(run: Run, queueOf: (taskQueue: string) => string): InvocationAttemptActivities {
  return proxyActivities<InvocationAttemptActivities>({
    taskQueue: queueOf(workflowInfo().taskQueue),
    scheduleToStartTimeout: Math.max(run.deadlineAtMs - Date.now(), 1_000),
    startToCloseTimeout: attemptMsMax(run),
    heartbeatTimeout: '10s',
    retry: ONCE,
    summary: `Attempt ${run.view.attempts}`,
  });
}

/** Waits until the next attempt is due or requested, or the deadline passes. */
async function pauseAfter(run: Run, step: string, failure: ActivityFailure): Promise<void> {
  const { steps } = run;
  const isCall = step === 'call';
  const spread = retryDelayMs(steps.failures, Math.random());
  const askedMs = Math.min(retryAfterMsOf(failure), RETRY_MS_MAX);
  const leftMs = isCall ? run.deadlineAtMs - Date.now() : Infinity;
  const delayMs = Math.max(Math.min(Math.max(spread, askedMs), leftMs), 1);
  const summary = `Until attempt ${run.view.attempts + 1}`;
  await steps.pause(delayMs, summary, () => steps.woken || (steps.cancelAsked && isCall));
  steps.woken = false;
}

function listen(run: Run): void {
  const { steps } = run;
  setHandler(
    messages.invocationOutcome,
    async () => {
      await lasting(() => condition(() => steps.ended || steps.failures >= ANSWERS_AFTER));
      return run.view;
    },
    { description: 'Returns when the invocation has ended, or will not end soon.' },
  );
  setHandler(
    messages.invocationRetry,
    async () => {
      await steps.untilHeeded('woken');
      return progressOf(run);
    },
    { description: 'For operators: starts the next attempt now.' },
  );
  setHandler(messages.invocationStatus, () => progressOf(run), {
    description: 'The status, the number of attempts and the last error.',
  });
}

function newRun(input: InvocationInput): Run {
  const run: Run = {
    invocationId: input.invocationId,
    steps: new Steps('begin', 'database', {
      stuckAfter: STUCK_AFTER,
      display: () => {
        const { view, steps } = run;
        display({ view, waitingFor: steps.waitingFor, stuck: steps.stuck, ended: steps.ended });
      },
      beginAnew: () =>
        continueAsNew<typeof invocation>({
          ...input,
          ...(run.task && { task: run.task }),
        }),
      pauseAfter: (step, failure) => pauseAfter(run, step, failure),
      stepMsMax: () => attemptMsMax(run),
    }),
    view: { status: 'pending', attempts: 0, error: null },
    deadlineAtMs: Infinity,
    attemptTimeoutMs: 0,
    task: input.task,
  };
  return run;
}

function progressOf({ view, steps }: Run): InvocationProgress {
  return { ...view, waitingFor: steps.waitingFor, stuck: steps.stuck };
}
