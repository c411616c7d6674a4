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
import type { Deployed, TemporalClient } from './client.ts';
import { everyMinute } from './every-minute.ts';
import { runsOn } from './starts.ts';

/** Starts a workflow without input at multiples of an interval, one run at a time. */
export interface Schedule {
  /** The workflow's type. With the task queue, it forms the ids of the schedule and of its workflows. */
  readonly workflow: string;
  /**
   * Raised when a release changes this row. A worker leaves a schedule with a higher number as it is: a newer
   * release made it, and this worker was only restarted later.
   */
  readonly definition: number;
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
      definition: 1,
      everySeconds: config.rollUpEverySeconds,
      // One late run does the work of all missed runs.
      catchUpSeconds: 10,
      timeoutSeconds: HOUR,
      summary: 'Earnings: add recent charges to the sums',
    },
    {
      workflow: 'expireHolds',
      definition: 1,
      // Workers sweep every second without it; this is a fallback.
      everySeconds: 60,
      catchUpSeconds: 10,
      timeoutSeconds: HOUR,
      summary: 'Holds: release expired holds',
    },
    {
      workflow: 'ensurePartitions',
      definition: 1,
      everySeconds: DAY,
      catchUpSeconds: DAY,
      // It may have to wait until load drops, but must end before the next one begins.
      timeoutSeconds: DAY - HOUR,
      summary: 'Charges and holds: create the partitions of the coming months',
    },
    {
      workflow: 'pruneLogs',
      definition: 1,
      everySeconds: DAY,
      catchUpSeconds: DAY,
      timeoutSeconds: HOUR,
      summary: 'Logs: delete old rows',
    },
    {
      workflow: 'reconcileTopUps',
      definition: 1,
      everySeconds: config.reconcileEverySeconds,
      // One late run covers all the time missed.
      catchUpSeconds: 60,
      timeoutSeconds: RECONCILED_WITHIN_SECONDS,
      summary: "Reconciliation: compare the processor's books with ours",
    },
  ];
}

export function scheduleIdOf({ taskQueue }: Deployed, workflow: string): string {
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

/**
 * Changes the options of a schedule that exists, if they differ and no newer release defined them, and nothing else
 * of it.
 */
async function adoptOptions(temporal: TemporalClient, schedule: Schedule): Promise<void> {
  const client = new CheckedScheduleClient(temporal.client);
  const handle = client.getHandle(scheduleIdOf(temporal, schedule.workflow));
  const wanted = optionsOf(temporal, schedule);
  for (let updates = 0; differences(await handle.describe(), wanted).length > 0; updates += 1) {
    if (updates === UPDATES_MAX) {
      throw new Error(`the schedule ${schedule.workflow} was changed during each update`);
    }
    await handle.update((current) =>
      isNewer(current, wanted) ? current : { ...wanted, state: current.state },
    );
  }
}

const PARTS = ['spec', 'action', 'policies'] as const;

/** The parts of a schedule that are not as wanted. None if a newer release defined it. */
function differences(
  description: ScheduleDescription,
  wanted: ScheduleOptions,
): (typeof PARTS)[number][] {
  if (isNewer(description, wanted)) return [];
  return PARTS.filter((part) => !includes(description[part], wanted[part]));
}

function isNewer({ action }: ScheduleDescription, wanted: ScheduleOptions): boolean {
  return definitionIn(action.memo) > definitionIn(wanted.action.memo);
}

/** 0 for a schedule made by a release without such numbers. */
function definitionIn(memo: Readonly<Record<string, unknown>> | undefined): number {
  return Number(memo?.['definition'] ?? 0);
}

/** Compared as JSON, which leaves out what is undefined. */
function includes(actual: object, wanted: object): boolean {
  const values = new Map(Object.entries(actual));
  return Object.entries(wanted).every(
    ([key, value]) => JSON.stringify(values.get(key)) === JSON.stringify(value),
  );
}

/**
 * Recreates schedules that somebody deleted or Temporal lost, and updates those that a worker of an earlier release
 * recreated. Leaves others as they are, although somebody may have changed their options.
 */
export async function restoreSchedules(
  temporal: TemporalClient,
  schedules: readonly Schedule[],
  log: Logger,
): Promise<void> {
  for (const schedule of schedules) {
    const found = await find(temporal, schedule);
    if (found) {
      if (definitionIn(found.action.memo) < schedule.definition) {
        await adoptOptions(temporal, schedule);
      }
    } else if (await isMade(temporal, schedule)) {
      log.warn({ schedule: schedule.workflow }, 'recreated a missing schedule');
    }
  }
}

async function find(
  temporal: TemporalClient,
  { workflow }: Schedule,
): Promise<ScheduleDescription | undefined> {
  try {
    return await temporal.client.schedule.getHandle(scheduleIdOf(temporal, workflow)).describe();
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return undefined;
    throw error;
  }
}

/** A schedule that does not start workflows as this release defines it, and why. */
interface ScheduleFault {
  readonly id: string;
  /** Worded to follow the id. */
  readonly reason: string;
}

/** The schedules that Temporal does not have, that somebody paused, or that have other options. */
export async function listScheduleFaults(
  temporal: TemporalClient,
  schedules: readonly Schedule[],
): Promise<readonly ScheduleFault[]> {
  const faults = await Promise.all(
    schedules.map(async (schedule) => {
      const id = scheduleIdOf(temporal, schedule.workflow);
      const found = await find(temporal, schedule);
      if (!found) return [{ id, reason: 'not found' }];
      const { paused, note } = found.state;
      return [
        ...(paused ? [{ id, reason: `paused: ${note || 'without a note'}` }] : []),
        ...differences(found, optionsOf(temporal, schedule)).map((part) => ({
          id,
          reason: `its ${part} differs from what this release and its settings define`,
        })),
      ];
    }),
  );
  return faults.flat();
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

type ScheduleOptions = ReturnType<typeof optionsOf>;

function optionsOf(temporal: TemporalClient, schedule: Schedule) {
  const { workflow, definition, everySeconds, catchUpSeconds, timeoutSeconds, summary } = schedule;
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
      // Temporal cannot update a schedule's own memo.
      memo: { definition },
    },
    // A run that takes longer than the interval also does the work of the next one.
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: catchUpSeconds * 1_000 },
  };
}
