/** Notices of the outbox, handed to the workflows that they are for, which they start where needed. */
import type { Logger } from 'pino';
import { takeUpAutoTopUp } from '../store/top-ups/auto-top-ups.ts';
import type { Database } from '../store/database.ts';
import { findGrant } from '../store/agents/grants.ts';
import { findInvocation } from '../store/agents/invocations.ts';
import { deleteNotice, postponeNotice, takeNotices, type Notice } from '../store/outbox.ts';
import { findTopUp } from '../store/top-ups/top-ups.ts';
import type { TemporalClient } from './client.ts';
import { reportGrant } from './start-grant.ts';
import { startInvocation } from './start-invocation.ts';
import { reportReversal, startTopUp } from './start-top-up.ts';

interface OutboxDeps {
  readonly database: Database;
  readonly temporal: TemporalClient;
  readonly log: Logger;
}

const AWAY_MS = 1_000;
/** Of what fails while others do not. */
const BACKOFF_MS_MAX = 60_000;

/** Takes a batch and returns its size. What fails is put off. */
export async function handOverNotices(
  deps: OutboxDeps,
  limit: number,
  leaseMs: number,
): Promise<number> {
  const notices = await takeNotices(deps.database, limit, leaseMs);
  const outcomes = await Promise.all(notices.map((notice) => handOver(deps, notice)));
  const failed = notices.filter((_, index) => !outcomes[index]);
  if (failed.length > 0) {
    const isUp = await deps.temporal.isUp();
    for (const { id, attempts } of failed) {
      await postponeNotice(deps.database, id, retryDelayMs(isUp, attempts));
    }
  }
  return notices.length;
}

/** For longer each time, unless it is Temporal that is away: then all are wanted when it is back. */
export function retryDelayMs(isTemporalUp: boolean, attempts: number): number {
  return isTemporalUp ? Math.min(2 ** Math.min(attempts, 10) * 1_000, BACKOFF_MS_MAX) : AWAY_MS;
}

async function handOver(deps: OutboxDeps, notice: Notice): Promise<boolean> {
  const { workflow, subjectId } = notice;
  try {
    await HAND_OVER[workflow](deps, notice);
    return true;
  } catch (err) {
    deps.log.warn({ err, workflow, subjectId }, 'a workflow could not be told');
    return false;
  }
}

type HandOver = (deps: OutboxDeps, notice: Notice) => Promise<void>;

const HAND_OVER: Readonly<Record<Notice['workflow'], HandOver>> = {
  grant: thenDelete(async ({ database, temporal }, subjectId) => {
    const grant = await findGrant(database, subjectId);
    if (grant) await reportGrant(temporal, grant);
  }),
  invocation: thenDelete(async ({ database, temporal }, subjectId) => {
    const invocation = await findInvocation(database, subjectId);
    if (invocation?.endedAt === null) await startInvocation(temporal, invocation);
  }),
  /** A new one that nobody waits for; one that is credited is to be refunded. */
  top_up: thenDelete(async ({ database, temporal }, subjectId) => {
    const topUp = await findTopUp(database, subjectId);
    if (topUp?.status === 'pending') await startTopUp(temporal, topUp);
    else if (topUp) await reportReversal(temporal, topUp);
  }),
  /** Becomes a notice of the kind above, in the transaction that deletes it. */
  auto_top_up: ({ database }, notice) => takeUpAutoTopUp(database, notice),
};

function thenDelete(tell: (deps: OutboxDeps, subjectId: string) => Promise<void>): HandOver {
  return async (deps, { id, subjectId }) => {
    await tell(deps, subjectId);
    await deleteNotice(deps.database, id);
  };
}
