/**
 * The steps of a reconciliation. Each is bounded and safe to repeat: it records the current differences, and a nudged
 * workflow asks the processor itself.
 */
import { ApplicationFailure } from '@temporalio/activity';
import { NIL_UUID } from '../src/domain/ids.ts';
import { eachInTurn, Pace } from '../src/stripe/pace.ts';
import {
  examine,
  isList,
  readPage,
  type Books,
  type Suspect,
  type Walk,
} from '../src/stripe/reconcile.ts';
import {
  getWalkStart,
  listDiffering,
  listUnsettled,
  recordWalk,
} from '../src/store/top-ups/reconciliation.ts';
import { readClock } from '../src/store/database.ts';
import { findTopUp, type TopUp } from '../src/store/top-ups/top-ups.ts';

export interface ReconciliationDeps extends Books {
  /** How many top-ups are compared per second at most. */
  readonly comparedPerSecond: number;
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

/** Each top-up takes a few calls to the processor, so a part ends well within its two minutes while Stripe is slow. */
const TOP_UPS_PER_PART = 50;
/** How many are compared at a time. Enough to keep the pace while Stripe answers a call in half a second. */
const AT_ONCE = 10;
const NOTHING: Omit<Part, 'after'> = { looked: 0, nudged: 0, differing: 0 };

function addUp(sum: typeof NOTHING, part: typeof NOTHING): typeof NOTHING {
  return {
    looked: sum.looked + part.looked,
    nudged: sum.nudged + part.nudged,
    differing: sum.differing + part.differing,
  };
}

export function createReconciliationActivities(deps: ReconciliationDeps) {
  const { database, comparedPerSecond } = deps;
  // For all parts that this worker runs: one run's parts follow one another.
  const pace = new Pace(comparedPerSecond);
  const examineAndNudge = async (suspect: Suspect): Promise<Omit<Part, 'after'>> => {
    const { differences, nudge } = await examine(deps, suspect);
    const topUp = nudge ? await findTopUp(database, suspect.topUpId) : null;
    if (topUp && nudge) await deps.nudges[nudge](topUp);
    return { looked: 1, nudged: topUp ? 1 : 0, differing: differences.length > 0 ? 1 : 0 };
  };
  const examineAll = async (suspects: readonly Suspect[]): Promise<Omit<Part, 'after'>> => {
    // The payments of one top-up one after the other: each comparison adds to what the one before recorded.
    const topUps = [...Map.groupBy(suspects, ({ topUpId }) => topUpId).values()];
    const examined = await eachInTurn(topUps, { pace, atOnce: AT_ONCE }, async (payments) => {
      const parts = [];
      for (const suspect of payments) parts.push(await examineAndNudge(suspect));
      return parts;
    });
    return examined.flat().reduce(addUp, NOTHING);
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
        until: Math.floor((await readClock(database)) / 1_000),
        reviewAfterMs: deps.reviewAfterMs,
      };
    },

    async examineUnsettled(afterId: string | null): Promise<Part> {
      const page = { afterId: afterId ?? NIL_UUID, limit: TOP_UPS_PER_PART };
      return examineIds(await listUnsettled(database, page));
    },

    async walkPage(walk: Walk): Promise<Part> {
      if (!isList(walk.list)) throw ApplicationFailure.nonRetryable('list not found', 'not_found');
      const { suspects, after } = await readPage(deps, walk);
      return { ...(await examineAll(suspects)), after };
    },

    /** Compares top-ups with recorded differences again. */
    async reviewDifferences(afterId: string | null): Promise<Part> {
      const page = { afterId: afterId ?? NIL_UUID, limit: TOP_UPS_PER_PART };
      return examineIds(await listDiffering(database, page));
    },

    async endWalk(until: number): Promise<void> {
      await recordWalk(database, new Date(until * 1_000).toISOString());
    },
  };
}
