/**
 * What happens by the clock: a table of Temporal Schedules, made or brought up to date whenever a worker
 * starts, by any number of workers at once, and made again when one is gone. A paused schedule stays paused: that is
 * an operator's word.
 */
import { setTimeout as delay } from 'node:timers/promises';
import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
} from '@temporalio/client';
import type { Logger } from 'pino';
import type { ScheduleConfig } from '../config.ts';
import type { TemporalClient } from './client.ts';

/** A workflow without input, at whole multiples of an interval, one run at a time. */
export interface Schedule {
  /** The workflow's type; with the task queue it makes the ids of the schedule and of its workflows. */
  readonly workflow: string;
  readonly everySeconds: number;
  /** How late a tick may still start a run, when Temporal was away; Temporal's least is 10. */
  readonly catchUpSeconds: number;
  /** After this a run that cannot go on, as after a fault in its code, makes way for the next one. */
  readonly timeoutSeconds: number;
  /** What it is for, as the Temporal UI shows it. */
  readonly summary: string;
}

const HOUR = 3_600;
const DAY = 24 * HOUR;
/** The first comparison of a large account reads all that it ever booked. */
export const RECONCILED_WITHIN_SECONDS = 6 * HOUR;

export function schedulesOf(config: ScheduleConfig): readonly Schedule[] {
  return [
    {
      workflow: 'rollUpEarnings',
      everySeconds: config.rollUpEverySeconds,
      // One late run does the work of all that were missed.
      catchUpSeconds: 10,
      timeoutSeconds: HOUR,
      summary: 'Earnings: move the tails into sums',
    },
    {
      workflow: 'expireHolds',
      // Workers sweep each second by themselves; this finds what they left.
      everySeconds: 60,
      catchUpSeconds: 10,
      timeoutSeconds: HOUR,
      summary: 'Holds: give back what expired holds reserve',
    },
    {
      workflow: 'ensurePartitions',
      everySeconds: DAY,
      catchUpSeconds: DAY,
      // It waits for a quiet moment.
      timeoutSeconds: DAY,
      summary: 'Charges and holds: make the partitions of the coming months',
    },
    {
      workflow: 'reconcileTopUps',
      everySeconds: config.reconcileEverySeconds,
      // One late run walks all the time that was missed.
      catchUpSeconds: 60,
      timeoutSeconds: RECONCILED_WITHIN_SECONDS,
      summary: "Reconciliation: the processor's books against ours",
    },
  ];
}

export function scheduleIdOf({ taskQueue }: TemporalClient, workflow: string): string {
  return `${taskQueue}/${workflow}`;
}

const RETRY_MS = 1_000;
const LOOK_AGAIN_MS = 60_000;

/** Brings Temporal up to the table, then looks every minute whether each schedule is still there; until `signal`. */
export async function keepSchedules(
  temporal: TemporalClient,
  schedules: readonly Schedule[],
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  let isUpToDate = false;
  while (!signal.aborted) {
    try {
      if (!isUpToDate) await ensureSchedules(temporal, schedules);
      else await restoreSchedules(temporal, schedules, log);
      isUpToDate = true;
    } catch (err) {
      log.info({ err }, 'the schedules could not be looked at');
    }
    await delay(isUpToDate ? LOOK_AGAIN_MS : RETRY_MS, undefined, { signal }).catch(() => {});
  }
}

export async function ensureSchedules(
  temporal: TemporalClient,
  schedules: readonly Schedule[],
): Promise<void> {
  for (const schedule of schedules) {
    if (await isMade(temporal, schedule)) continue;
    const scheduleId = scheduleIdOf(temporal, schedule.workflow);
    const wanted = optionsOf(temporal, schedule);
    const handle = temporal.client.schedule.getHandle(scheduleId);
    await handle.update(({ state }) => ({ ...wanted, state }));
  }
}

/** Makes those again that somebody deleted, or that Temporal lost. */
export async function restoreSchedules(
  temporal: TemporalClient,
  schedules: readonly Schedule[],
  log: Logger,
): Promise<void> {
  for (const schedule of schedules) {
    if (await isMade(temporal, schedule)) {
      log.warn({ schedule: schedule.workflow }, 'made a schedule again that was gone');
    }
  }
}

/** The ids of those that Temporal does not have. */
export async function listMissingSchedules(
  temporal: TemporalClient,
  schedules: readonly Schedule[],
): Promise<readonly string[]> {
  const missing: string[] = [];
  for (const { workflow } of schedules) {
    const scheduleId = scheduleIdOf(temporal, workflow);
    try {
      await temporal.client.schedule.getHandle(scheduleId).describe();
    } catch (error) {
      if (!(error instanceof ScheduleNotFoundError)) throw error;
      missing.push(scheduleId);
    }
  }
  return missing;
}

/** Whether it was made by this call; else it is there already, whatever it looks like. */
async function isMade(temporal: TemporalClient, schedule: Schedule): Promise<boolean> {
  try {
    await temporal.client.schedule.create({
      ...optionsOf(temporal, schedule),
      scheduleId: scheduleIdOf(temporal, schedule.workflow),
    });
    return true;
  } catch (error) {
    if (error instanceof ScheduleAlreadyRunning) return false;
    throw error;
  }
}

function optionsOf(temporal: TemporalClient, schedule: Schedule) {
  const { workflow, everySeconds, catchUpSeconds, timeoutSeconds, summary } = schedule;
  return {
    spec: { intervals: [{ every: everySeconds * 1_000 }] },
    action: {
      type: 'startWorkflow' as const,
      workflowType: workflow,
      // Scoped, so that deployments that share a namespace do not take each other's runs for their own.
      workflowId: scheduleIdOf(temporal, workflow),
      taskQueue: temporal.taskQueue,
      workflowExecutionTimeout: timeoutSeconds * 1_000,
      staticSummary: summary,
    },
    // A run that takes longer than the interval takes the next one's work with it.
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: catchUpSeconds * 1_000 },
  };
}
