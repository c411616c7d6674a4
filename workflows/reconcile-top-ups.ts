/**
 * Compares the processor's books with ours, part by part: everything that the processor booked since the last run,
 * then our unfinished top-ups. It nudges the workflows of top-ups that differ, which correct what they can, and records
 * the remaining differences. Started by a schedule; if a run ends early, the next one starts from the same point.
 */
import { continueAsNew, patched, proxyActivities, sleep, workflowInfo } from '@temporalio/workflow';
import type { Part, ReconcileTopUpsActivities } from '../activities/reconcile-top-ups.ts';
import { REVIEW_AFTER_MS } from '../src/domain/retries.ts';
import { stripeTaskQueue } from '../src/domain/task-queues.ts';

/** The progress of a reconciliation: its result, and what a run passes to the next one. */
export interface Reconciliation {
  readonly since: number;
  readonly until: number;
  /** The next part: its stage, and where in that stage it starts. */
  readonly stage: number;
  readonly after: string | null;
  readonly looked: number;
  readonly nudged: number;
  /** Top-ups that still differ. */
  readonly differing: number;
  /**
   * Whether `stage` counts the walks first. Runs that began in an earlier release count our unfinished
   * top-ups first.
   */
  readonly isWalkFirst?: boolean;
  /** When to look again at what differs. Histories that were recorded earlier do not have it. */
  readonly reviewAfterMs?: readonly number[];
}

const STEP = {
  startToCloseTimeout: '2m',
  heartbeatTimeout: '5s',
  // A run that gives up shows as failed, and the next scheduled run continues its work.
  retry: {
    initialInterval: '1s',
    backoffCoefficient: 2,
    maximumInterval: '1m',
    maximumAttempts: 10,
  },
} as const;

const inPostgres = (summary: string) =>
  proxyActivities<ReconcileTopUpsActivities>({ ...STEP, summary });

/** In the paced queue, after the steps of payments that somebody waits for. */
const atProcessor = (summary: string) =>
  proxyActivities<ReconcileTopUpsActivities>({
    ...STEP,
    taskQueue: stripeTaskQueue(workflowInfo().taskQueue),
    priority: { priorityKey: 5 },
    summary,
  });

type Stage = (progress: Reconciliation) => Promise<Part>;

const walking =
  (list: 'balanceTransactions' | 'refunds' | 'disputes' | 'earlyFraudWarnings'): Stage =>
  ({ since, until, after }) =>
    atProcessor(`Read the processor's ${list}`).walkPage({ list, since, until, after });

const WALKS: readonly Stage[] = [
  walking('balanceTransactions'),
  walking('refunds'),
  walking('disputes'),
  walking('earlyFraudWarnings'),
];
/** After the walks, which find a payment that nobody reported: many unfinished top-ups must not delay its credit. */
const UNSETTLED: Stage = ({ after }) =>
  atProcessor('Check unfinished top-ups').examineUnsettled(after);

export async function reconcileTopUps(begun?: Reconciliation): Promise<Reconciliation> {
  const plan = begun ?? (await inPostgres('Plan the comparison').planWalk());
  const isWalkFirst = begun ? begun.isWalkFirst === true : patched('walk-first');
  const start = { stage: 0, after: null, looked: 0, nudged: 0, differing: 0, isWalkFirst };
  let progress: Reconciliation = begun ?? { ...start, ...plan };
  const stages = isWalkFirst ? [...WALKS, UNSETTLED] : stagesBefore();
  for (let stage = stages[progress.stage]; stage; stage = stages[progress.stage]) {
    if (workflowInfo().continueAsNewSuggested) {
      await continueAsNew<typeof reconcileTopUps>(progress);
    }
    const part = await stage(progress);
    progress = {
      ...progress,
      stage: part.after === null ? progress.stage + 1 : progress.stage,
      after: part.after,
      looked: progress.looked + part.looked,
      nudged: progress.nudged + part.nudged,
    };
  }
  await inPostgres('Record how far the comparison got').endWalk(progress.until);
  return { ...progress, differing: await review(progress) };
}

/** The stages of runs that began in an earlier release; the earliest had no fraud warnings. */
function stagesBefore(): readonly Stage[] {
  return [UNSETTLED, ...(patched('fraud-warnings') ? WALKS : WALKS.slice(0, 3))];
}

/** The number of top-ups that still differ, after the nudged workflows had time to finish. */
async function review({
  nudged,
  reviewAfterMs = REVIEW_AFTER_MS,
}: Reconciliation): Promise<number> {
  let differing = 0;
  for (const waitMs of nudged > 0 ? reviewAfterMs : [0]) {
    if (waitMs > 0) await sleep(waitMs, { summary: 'Give the notified workflows time' });
    differing = await reviewOnce();
    if (differing === 0) break;
  }
  return differing;
}

async function reviewOnce(): Promise<number> {
  const { reviewDifferences } = atProcessor('Check the differences again');
  let differing = 0;
  let part: Part | undefined;
  do {
    part = await reviewDifferences(part?.after ?? null);
    differing += part.differing;
  } while (part.after !== null);
  return differing;
}
