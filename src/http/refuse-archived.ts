/** Refuses to list or look up charges of archived months: the ledger has only their sums. */
import { ApiError } from '../domain/errors.ts';
import { uuidTimeMs } from '../domain/ids.ts';
import { readArchivedBefore } from '../store/charges/archived.ts';
import type { Connection } from '../store/database.ts';
import type { TimeRange } from './filters.ts';
import { noSuch } from './look-ups.ts';

interface Reading {
  readonly database: Connection;
}

/** For lists. A list without bounds ends with the oldest charge that is not archived. */
export function refuseArchivedRange(api: Reading, range: TimeRange): Promise<void> {
  return refuse(api, beginOf(range));
}

function beginOf({ fromMs, toMs }: TimeRange): number {
  return Math.min(fromMs ?? Infinity, toMs ?? Infinity);
}

/**
 * For a list that is read in many pages: checks before the first page, and after the last one that none of its charges
 * was archived meanwhile. Otherwise the list would end too early.
 */
export function archiveGuard(api: Reading, range: TimeRange): () => Promise<void> {
  let startMs: number | undefined;
  return async () => {
    const beforeMs = await readArchivedBefore(api.database);
    startMs ??= beforeMs;
    const isArchivedSince = beforeMs > startMs && (range.fromMs ?? 0) < beforeMs;
    if (isArchivedSince || beginOf(range) < beforeMs) throw archived(beforeMs);
  };
}

/** Refuses a charge that was not found: as archived if it may be, otherwise as unknown. `chargeId` is a UUID. */
export async function refuseUnknownCharge(
  api: Reading,
  chargeId: string | undefined,
): Promise<never> {
  if (chargeId !== undefined) await refuseArchivedCharge(api, chargeId);
  throw noSuch('charge');
}

/** Refuses a charge that may be among the archived ones. */
export function refuseArchivedCharge(api: Reading, chargeId: string): Promise<void> {
  return refuse(api, uuidTimeMs(chargeId));
}

/** Whether charges that were made with this id, or soon after, may be archived. */
export async function mayBeArchived({ database }: Reading, id: string): Promise<boolean> {
  return uuidTimeMs(id) < (await readArchivedBefore(database));
}

async function refuse({ database }: Reading, timeMs: number): Promise<void> {
  if (timeMs === Infinity) return;
  const beforeMs = await readArchivedBefore(database);
  if (timeMs < beforeMs) throw archived(beforeMs);
}

function archived(beforeMs: number): ApiError {
  return new ApiError(
    'charges_archived',
    `Charges made before ${new Date(beforeMs).toISOString()} are archived. Statements and earnings still include them.`,
  );
}
