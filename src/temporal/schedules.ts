/**
 * What happens by the clock: a table of Temporal Schedules, made or brought up to date whenever a worker
 * starts, by any number of workers at once. A paused schedule stays paused: that is an operator's word.
 */
import { ScheduleAlreadyRunning, ScheduleOverlapPolicy } from '@temporalio/client';
import type { Config } from '../config.ts';
import type { TemporalClient } from './client.ts';

/** A workflow without input, at whole multiples of an interval, one run at a time. */
export interface Schedule {
  /** The workflow's type; with the task queue it makes the schedule's id. */
  readonly workflow: string;
  readonly everySeconds: number;
  /** How late a tick may still start a run, when Temporal was away; Temporal's least is 10. */
  readonly catchUpSeconds: number;
  /** What it is for, as the Temporal UI shows it. */
  readonly summary: string;
}

export function schedulesOf(config: Config): readonly Schedule[] {
  return [
    {
      workflow: 'rollUpEarnings',
      everySeconds: config.rollUpEverySeconds,
      // One late run does the work of all that were missed.
      catchUpSeconds: 10,
      summary: 'Earnings: move the tails into sums',
    },
    {
      workflow: 'expireHolds',
      // Workers sweep each second by themselves; this finds what they left.
      everySeconds: 60,
      catchUpSeconds: 10,
      summary: 'Holds: give back what expired holds reserve',
    },
    {
      workflow: 'ensurePartitions',
      everySeconds: 86_400,
      catchUpSeconds: 86_400,
      summary: 'Charges and holds: make the partitions of the coming months',
    },
    {
      workflow: 'reconcileTopUps',
      everySeconds: config.reconcileEverySeconds,
      // One late run walks all the time that was missed.
      catchUpSeconds: 60,
      summary: "Reconciliation: the processor's books against ours",
    },
  ];
}

export function scheduleIdOf({ taskQueue }: TemporalClient, workflow: string): string {
  return `${taskQueue}/${workflow}`;
}

export async function ensureSchedules(
  temporal: TemporalClient,
  schedules: readonly Schedule[],
): Promise<void> {
  for (const schedule of schedules) await ensureSchedule(temporal, schedule);
}

async function ensureSchedule(temporal: TemporalClient, schedule: Schedule): Promise<void> {
  const { client, taskQueue } = temporal;
  const { workflow, everySeconds, catchUpSeconds, summary } = schedule;
  const scheduleId = scheduleIdOf(temporal, workflow);
  const wanted = {
    spec: { intervals: [{ every: everySeconds * 1_000 }] },
    action: {
      type: 'startWorkflow' as const,
      workflowType: workflow,
      workflowId: workflow,
      taskQueue,
      staticSummary: summary,
    },
    // A run that takes longer than the interval takes the next one's work with it.
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: catchUpSeconds * 1_000 },
  };
  try {
    await client.schedule.create({ ...wanted, scheduleId });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    await client.schedule.getHandle(scheduleId).update(({ state }) => ({ ...wanted, state }));
  }
}
