/**
 * The table of Temporal Schedules. Every worker creates or updates them when it starts, safely at the same time as
 * others, and recreates missing ones. A paused schedule stays paused, because an operator paused it.
 */
import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
  type ScheduleDescription,
} from '@temporalio/client';
import type { Logger } from 'pino';
import type { ScheduleConfig } from '../config.ts';
import { CheckedScheduleClient } from './checked-schedule-client.ts';
import type { TemporalClient } from './client.ts';
import { everyMinute } from './every-minute.ts';
import { runsOn } from './starts.ts';

/** Starts a workflow without input at multiples of an interval, one run at a time. */
export interface Schedule {
  /** The workflow's type. With the task queue, it forms the ids of the schedule and of its workflows. */
  readonly workflow: string;
  readonly everySeconds: number;
  /** How late a tick may still start a run after Temporal was down. Temporal's minimum is 10. */
  readonly catchUpSeconds: number;
  /**
   * After this, a run that cannot continue, for example because of a bug, makes way for the next one. A tick that comes
   * before is skipped.
   */
  readonly timeoutSeconds: number;
  /** Its purpose, shown in the Temporal UI. */
  readonly summary: string;
}

const HOUR = 3_600;
const DAY = 24 * HOUR;
/** The first comparison of a large account reads its whole history. */
export const RECONCILED_WITHIN_SECONDS = 6 * HOUR;

export function schedulesOf(config: ScheduleConfig): readonly Schedule[] {
  return [
    {
      workflow: 'rollUpEarnings',
      everySeconds: config.rollUpEverySeconds,
      // One late run does the work of all missed runs.
      catchUpSeconds: 10,
      timeoutSeconds: HOUR,
      summary: 'Earnings: add recent charges to the sums',
    },
    {
      workflow: 'expireHolds',
      // Workers sweep every second without it; this is a fallback.
      everySeconds: 60,
      catchUpSeconds: 10,
      timeoutSeconds: HOUR,
      summary: 'Holds: release expired holds',
    },
    {
      workflow: 'ensurePartitions',
      everySeconds: DAY,
      catchUpSeconds: DAY,
      // It may have to wait until load drops, but must end before the next one begins.
      timeoutSeconds: DAY - HOUR,
      summary: 'Charges and holds: create the partitions of the coming months',
    },
    {
      workflow: 'pruneLogs',
      everySeconds: DAY,
      catchUpSeconds: DAY,
      timeoutSeconds: HOUR,
      summary: 'Logs: delete old rows',
    },
    {
      workflow: 'reconcileTopUps',
      everySeconds: config.reconcileEverySeconds,
      // One late run covers all the time missed.
      catchUpSeconds: 60,
      timeoutSeconds: RECONCILED_WITHIN_SECONDS,
      summary: "Reconciliation: compare the processor's books with ours",
    },
  ];
}

export function scheduleIdOf({ taskQueue }: TemporalClient, workflow: string): string {
  return `${taskQueue}/${workflow}`;
}

/** Creates and updates the schedules, then checks every minute that they still exist, until `signal` aborts. */
export async function keepSchedules(
  temporal: TemporalClient,
  schedules: readonly Schedule[],
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  let isUpToDate = false;
  const keep = async () => {
    if (isUpToDate) await restoreSchedules(temporal, schedules, log);
    else await ensureSchedules(temporal, schedules);
    isUpToDate = true;
  };
  await everyMinute(temporal, signal, keep, (err) =>
    log.info({ err }, 'could not check the schedules'),
  );
}

export async function ensureSchedules(
  temporal: TemporalClient,
  schedules: readonly Schedule[],
): Promise<void> {
  for (const schedule of schedules) {
    if (!(await isMade(temporal, schedule))) await adoptOptions(temporal, schedule);
  }
}

const UPDATES_MAX = 5;

/** Changes the options of a schedule that exists, if they differ, and nothing else of it. */
async function adoptOptions(temporal: TemporalClient, schedule: Schedule): Promise<void> {
  const client = new CheckedScheduleClient(temporal.client);
  const handle = client.getHandle(scheduleIdOf(temporal, schedule.workflow));
  const wanted = optionsOf(temporal, schedule);
  for (let updates = 0; !hasOptions(await handle.describe(), wanted); updates += 1) {
    if (updates === UPDATES_MAX) {
      throw new Error(`the schedule ${schedule.workflow} was changed during each update`);
    }
    await handle.update(({ state }) => ({ ...wanted, state }));
  }
}

function hasOptions(
  description: ScheduleDescription,
  wanted: ReturnType<typeof optionsOf>,
): boolean {
  const parts = ['spec', 'action', 'policies'] as const;
  return parts.every((part) => includes(description[part], wanted[part]));
}

/** Compared as JSON, which leaves out what is undefined. */
function includes(actual: object, wanted: object): boolean {
  const values = new Map(Object.entries(actual));
  return Object.entries(wanted).every(
    ([key, value]) => JSON.stringify(values.get(key)) === JSON.stringify(value),
  );
}

/** Recreates schedules that somebody deleted or Temporal lost. */
export async function restoreSchedules(
  temporal: TemporalClient,
  schedules: readonly Schedule[],
  log: Logger,
): Promise<void> {
  for (const schedule of schedules) {
    if (await isMade(temporal, schedule)) {
      log.warn({ schedule: schedule.workflow }, 'recreated a missing schedule');
    }
  }
}

/** A schedule that starts no workflows, and why. */
interface IdleSchedule {
  readonly id: string;
  readonly reason: string;
}

/** The schedules that Temporal does not have, or that somebody paused. */
export async function listIdleSchedules(
  temporal: TemporalClient,
  schedules: readonly Schedule[],
): Promise<readonly IdleSchedule[]> {
  const idle: IdleSchedule[] = [];
  for (const { workflow } of schedules) {
    const id = scheduleIdOf(temporal, workflow);
    try {
      const { state } = await temporal.client.schedule.getHandle(id).describe();
      if (state.paused) idle.push({ id, reason: `paused: ${state.note || 'without a note'}` });
    } catch (error) {
      if (!(error instanceof ScheduleNotFoundError)) throw error;
      idle.push({ id, reason: 'not found' });
    }
  }
  return idle;
}

/** Whether this call created it. False: it already exists, possibly with other options. */
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
      // Scoped, so that deployments in one namespace do not mistake each other's runs for their own.
      workflowId: scheduleIdOf(temporal, workflow),
      ...runsOn(temporal),
      workflowExecutionTimeout: timeoutSeconds * 1_000,
      staticSummary: summary,
    },
    // A run that takes longer than the interval also does the work of the next one.
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: catchUpSeconds * 1_000 },
  };
}
