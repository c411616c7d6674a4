/**
 * The steps of a reconciliation. Each is bounded and safe to repeat: it records the current differences, and a nudged
 * workflow asks the processor itself.
 */
import { ApplicationFailure } from '@temporalio/activity';
import { examine, readPage, type Books, type Suspect, type Walk } from '../src/stripe/reconcile.ts';
import {
  getWalkStart,
  listDiffering,
  listUnsettled,
  recordWalk,
} from '../src/store/audit/reconciliation.ts';
import { findTopUp, type TopUp } from '../src/store/top-ups/top-ups.ts';

export interface ReconciliationDeps extends Books {
  /** The pauses before each check of what differed. */
  readonly reviewAfterMs: readonly number[];
  /** Make the workflow of a top-up check again; start it if it has ended. */
  readonly nudges: Readonly<Record<'payment' | 'reversal', (topUp: TopUp) => Promise<void>>>;
}

/** The time range to compare, in Unix seconds, and the pauses before each check of what differed. */
export interface WalkPlan {
  readonly since: number;
  readonly until: number;
  readonly reviewAfterMs: readonly number[];
}

/** The result of one part. `after` is where the next part begins, or null at the end. */
export interface Part {
  readonly after: string | null;
  readonly looked: number;
  readonly nudged: number;
  readonly differing: number;
}

export type ReconciliationActivities = ReturnType<typeof createReconciliationActivities>;

/** Each top-up takes a few calls to the processor. */
const TOP_UPS_PER_PART = 20;
const LISTS: ReadonlySet<Walk['list']> = new Set([
  'balanceTransactions',
  'refunds',
  'disputes',
  'earlyFraudWarnings',
]);
const NIL = '00000000-0000-0000-0000-000000000000';

export function createReconciliationActivities(deps: ReconciliationDeps) {
  const { database } = deps;
  const examineAll = async (suspects: readonly Suspect[]): Promise<Omit<Part, 'after'>> => {
    let differing = 0;
    let nudged = 0;
    for (const suspect of suspects) {
      const { differences, nudge } = await examine(deps, suspect);
      if (differences.length > 0) differing += 1;
      const topUp = nudge ? await findTopUp(database, suspect.topUpId) : null;
      if (topUp && nudge) {
        await deps.nudges[nudge](topUp);
        nudged += 1;
      }
    }
    return { looked: suspects.length, nudged, differing };
  };
  const examineIds = async (ids: readonly string[]): Promise<Part> => ({
    ...(await examineAll(ids.map((topUpId) => ({ topUpId })))),
    after: ids.length < TOP_UPS_PER_PART ? null : (ids.at(-1) ?? null),
  });
  return {
    async planWalk(): Promise<WalkPlan> {
      const since = Date.parse(await getWalkStart(database));
      return {
        since: Math.floor(since / 1_000),
        until: Math.floor(Date.now() / 1_000),
        reviewAfterMs: deps.reviewAfterMs,
      };
    },

    async examineUnsettled(afterId: string | null): Promise<Part> {
      const page = { afterId: afterId ?? NIL, limit: TOP_UPS_PER_PART };
      return examineIds(await listUnsettled(database, page));
    },

    async walkPage(walk: Walk): Promise<Part> {
      if (!LISTS.has(walk.list))
        throw ApplicationFailure.nonRetryable('list not found', 'not_found');
      const { suspects, after } = await readPage(deps, walk);
      return { ...(await examineAll(suspects)), after };
    },

    /** Compares top-ups with recorded differences again. */
    async reviewDifferences(afterId: string | null): Promise<Part> {
      const page = { afterId: afterId ?? NIL, limit: TOP_UPS_PER_PART };
      return examineIds(await listDiffering(database, page));
    },

    /** Records how far the comparison got, never later than now, even if the caller says so. */
    async endWalk(until: number): Promise<void> {
      await recordWalk(database, new Date(Math.min(until * 1_000, Date.now())).toISOString());
    },
  };
}
