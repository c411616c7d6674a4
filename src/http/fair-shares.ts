/**
 * The share of an API process that one account may use, so that a busy account slows down only itself.
 * Callers of an account divide most shares (caller-gate.ts).
 */
import { AccountGate } from './account-gate.ts';
import { CallerGate } from './caller-gate.ts';

/** An account's share of the 8 connections for reads: two accounts that flood the API leave some for the others. */
const READS = { weightMax: 2, waitMsMax: 2_000, waitingMax: 100 };

/**
 * Each may keep a core of Postgres busy for seconds. One at a time, in all processes, leaves the other cores to
 * charges.
 */
const SCANS = { weightMax: 1, waitMsMax: 2_000, waitingMax: 100 };

/** An export lasts as long as its reader takes. Each page is a statement of a few milliseconds. */
const EXPORTS = { weightMax: 3, waitMsMax: 2_000, waitingMax: 20 };

/** Each locks a consumer. That consumer's charges wait meanwhile, with everything else in their flush. */
const REFUNDS = { weightMax: 2, waitMsMax: 5_000, waitingMax: 100 };

/**
 * Bytes of batches: about 2,000 charges in ten flushes, which keep the database busy. A larger share would only make
 * others wait for the event loop while thousands of members are parsed and answered. While a developer with few charges
 * charges, it is about 500 charges, or one larger batch.
 */
const BYTES_IN_PROGRESS_MAX = 256 * 1024;
const BYTES_IN_PROGRESS_SHARED_MAX = 64 * 1024;
const BATCHES_AND_SETTLEMENTS = { waitMsMax: 5_000, waitingMax: 256 };

/**
 * What changes settings, tools, budgets, keys and the like, and answers from a few rows. Each has one of the
 * connections that all accounts read with.
 */
const CHANGES = { weightMax: 2, waitMsMax: 10_000, waitingMax: 500 };

/** Their rows only: a request waits for Temporal and Stripe without a share. Those of a consumer lock one another. */
const TOP_UPS = { weightMax: 2, waitMsMax: 5_000, waitingMax: 100 };

/**
 * One at a time for each link, so that its checkouts are counted exactly within a process, and for what asks
 * Stripe before it answers.
 */
const ONE_BY_ONE = { weightMax: 1, waitMsMax: 15_000, waitingMax: 10 };

/**
 * The first check of requests that then wait. One account may send hundreds of them at once, and each may wait here for
 * as long as it asked to wait.
 */
export const WAITS = { weightMax: 2, waitMsMax: 10_000, waitingMax: 2_000 };

/** Shares of requests that weigh as much as their bodies. Each is of an account's secret keys. */
export type ShareByBytes = 'batches' | 'settlements';
type ShareByCaller = 'reads' | 'scans' | 'waits' | 'exports' | 'refunds' | 'changes' | 'topUps';

export type FairShares = Readonly<
  Record<ShareByCaller, CallerGate> & Record<ShareByBytes | 'oneByOne', AccountGate>
>;

/**
 * An account that always has more to do would keep a core busy. So there is a rest after each piece of its
 * work, in which others charge.
 */
const REST = { factor: 9, msMax: 600 };

/** What the shares have to know of charging (charging/flush-size.ts). */
interface ChargingNow {
  /** Whether a developer with few charges charges beside others. */
  readonly isShared: boolean;
  readonly isCharging: boolean;
}

export function createFairShares(now: ChargingNow): FairShares {
  const batchBytesMax = () => (now.isShared ? BYTES_IN_PROGRESS_SHARED_MAX : BYTES_IN_PROGRESS_MAX);
  const rest = { ...REST, isUseful: () => now.isCharging };
  return {
    reads: new CallerGate(READS),
    scans: new CallerGate({ ...SCANS, rest }),
    waits: new CallerGate(WAITS),
    exports: new CallerGate(EXPORTS),
    refunds: new CallerGate({ ...REFUNDS, rest }),
    batches: new AccountGate({
      ...BATCHES_AND_SETTLEMENTS,
      weightMax: batchBytesMax,
      rest: { ...REST, isUseful: () => now.isShared },
    }),
    settlements: new AccountGate({ ...BATCHES_AND_SETTLEMENTS, weightMax: batchBytesMax }),
    changes: new CallerGate(CHANGES),
    topUps: new CallerGate(TOP_UPS),
    oneByOne: new AccountGate(ONE_BY_ONE),
  };
}
