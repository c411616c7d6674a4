/**
 * Holds the processor's books against ours, part by part: our own top-ups that are not settled, then all that the
 * processor booked since the last time. What it meets it has mended by the top-ups' own workflows; what then
 * still differs stays written down. A schedule starts it; one that ends early is followed by one from the same point.
 */
import { continueAsNew, proxyActivities, sleep, workflowInfo } from '@temporalio/workflow';
import type { Part, ReconciliationActivities } from '../activities/reconciliation.ts';
import { REVIEW_AFTER_MS } from '../src/domain/retries.ts';

/** How far it is: the answer when it has ended, and what a run hands to the next one. */
export interface Reconciliation {
  readonly since: number;
  readonly until: number;
  /** What comes next: a stage, and where in it. */
  readonly stage: number;
  readonly after: string | null;
  readonly looked: number;
  readonly nudged: number;
  /** Top-ups that still differ. */
  readonly differing: number;
  /** When to look again at what differs. Histories that were recorded earlier do not have it. */
  readonly reviewAfterMs?: readonly number[];
}

const activities = (summary: string) =>
  proxyActivities<ReconciliationActivities>({
    startToCloseTimeout: '2m',
    heartbeatTimeout: '5s',
    // A run that gives up is seen as failed, and the schedule's next one takes up its work.
    retry: {
      initialInterval: '1s',
      backoffCoefficient: 2,
      maximumInterval: '1m',
      maximumAttempts: 10,
    },
    summary,
  });

type Stage = (progress: Reconciliation) => Promise<Part>;

const walking =
  (list: 'balanceTransactions' | 'refunds' | 'disputes'): Stage =>
  ({ since, until, after }) =>
    activities(`Walk the processor's ${list}`).walkPage({ list, since, until, after });

const STAGES: readonly Stage[] = [
  ({ after }) => activities('Ask about top-ups that are not settled').examineUnsettled(after),
  walking('balanceTransactions'),
  walking('refunds'),
  walking('disputes'),
];

export async function reconcileTopUps(begun?: Reconciliation): Promise<Reconciliation> {
  const plan = begun ?? (await activities('Plan the walk').planWalk());
  const start = { stage: 0, after: null, looked: 0, nudged: 0, differing: 0 };
  let progress: Reconciliation = begun ?? { ...start, ...plan };
  for (let stage = STAGES[progress.stage]; stage; stage = STAGES[progress.stage]) {
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
  await activities('Note how far the walk came').endWalk(progress.until);
  return { ...progress, differing: await review(progress) };
}

/** How many still differ, after what was nudged had time to do its work. */
async function review({
  nudged,
  reviewAfterMs = REVIEW_AFTER_MS,
}: Reconciliation): Promise<number> {
  let differing = 0;
  for (const waitMs of nudged > 0 ? reviewAfterMs : [0]) {
    if (waitMs > 0) await sleep(waitMs, { summary: 'Give the nudged workflows time' });
    differing = await reviewOnce();
    if (differing === 0) break;
  }
  return differing;
}

async function reviewOnce(): Promise<number> {
  const { reviewDifferences } = activities('Look again at what differed');
  let differing = 0;
  let part: Part | undefined;
  do {
    part = await reviewDifferences(part?.after ?? null);
    differing += part.differing;
  } while (part.after !== null);
  return differing;
}
