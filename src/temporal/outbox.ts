/** Notices of the outbox, handed to the workflows that they are for, which they start where needed. */
import type { Logger } from 'pino';
import { takeUpAutoTopUp } from '../store/top-ups/auto-top-ups.ts';
import type { Database } from '../store/database.ts';
import { findGrant } from '../store/agents/grants.ts';
import { findInvocation } from '../store/agents/invocations.ts';
import {
  deleteNotices,
  postponeNotice,
  takeNotices,
  type Notice,
  type Topic,
} from '../store/outbox.ts';
import { findTopUp } from '../store/top-ups/top-ups.ts';
import type { TemporalClient } from './client.ts';
import { reportGrant } from './start-grant.ts';
import { startInvocation } from './start-invocation.ts';
import { reportPayment, reportReversal, startTopUp } from './start-top-up.ts';

export interface OutboxDeps {
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
  // Several reports of one payment are one signal.
  const groups = Map.groupBy(notices, ({ topic, subjectId }) => `${topic} ${subjectId}`);
  const failed: Notice[] = [];
  await Promise.all(
    [...groups.values()].map(async (group) => {
      try {
        await handOver(deps, group);
      } catch (err) {
        const [{ topic, subjectId } = {}] = group;
        deps.log.warn({ err, topic, subjectId }, 'a workflow could not be told');
        failed.push(...group);
      }
    }),
  );
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

/** All of the group are on one topic and of one subject. */
async function handOver(deps: OutboxDeps, group: readonly Notice[]): Promise<void> {
  const [first] = group;
  if (!first) return;
  const { topic, subjectId } = first;
  if (topic === 'auto_top_up') {
    // Becomes a notice of `top_up`, in the transaction that deletes it.
    for (const notice of group) await takeUpAutoTopUp(deps.database, notice);
    return;
  }
  const told = await TELL[topic](deps, subjectId);
  if (told === 'told') {
    return deleteNotices(
      deps.database,
      group.map(({ id }) => id),
    );
  }
  for (const { id, attempts } of group) {
    await postponeNotice(deps.database, id, retryDelayMs(true, attempts));
  }
}

/** `not_taken_up`: Temporal has the workflow, and may yet lose it, so the notice stays. */
type Told = 'told' | 'not_taken_up';

const TELL: Readonly<
  Record<Exclude<Topic, 'auto_top_up'>, (deps: OutboxDeps, subjectId: string) => Promise<Told>>
> = {
  async grant({ database, temporal }, subjectId) {
    const grant = await findGrant(database, subjectId);
    if (grant) await reportGrant(temporal, grant);
    return 'told';
  },

  async invocation({ database, temporal }, subjectId) {
    const invocation = await findInvocation(database, subjectId);
    if (invocation?.endedAt === null) await startInvocation(temporal, invocation);
    return 'told';
  },

  /** The workflow's first step deletes the notice; here it goes only if that was overtaken. */
  async top_up({ database, temporal }, subjectId) {
    const topUp = await findTopUp(database, subjectId);
    if (topUp?.status !== 'pending' || topUp.isClaimed) return 'told';
    await startTopUp(temporal, topUp);
    return 'not_taken_up';
  },

  async payment_reported({ database, temporal }, subjectId) {
    const topUp = await findTopUp(database, subjectId);
    // What is credited cannot become paid; a workflow that had nothing to do would only cost.
    const mayBePaid = topUp && ['pending', 'expired', 'failed'].includes(topUp.status);
    if (mayBePaid) await reportPayment(temporal, topUp);
    return 'told';
  },

  async reversal_reported({ database, temporal }, subjectId) {
    const topUp = await findTopUp(database, subjectId);
    if (topUp) await reportReversal(temporal, topUp);
    return 'told';
  },
};
