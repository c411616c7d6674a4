/**
 * Somebody asks for an invocation: its row first, then its workflow. Once the row is there the agent will be
 * called, whether Temporal can be reached now or not: what this does not start, a relay does.
 */
import type { Logger } from 'pino';
import type { Database } from '../store/database.ts';
import {
  admitInvocation,
  findInvocation,
  type AdmitResult,
  type Invocation,
  type NewInvocation,
} from '../store/agents/invocations.ts';
import { deleteNoticesOf } from '../store/outbox.ts';
import type { TemporalClient } from '../temporal/client.ts';
import { awaitInvocation, startInvocation } from '../temporal/start-invocation.ts';
import type { Turns } from '../temporal/turns.ts';

export interface Invocations {
  readonly database: Database;
  readonly temporal: TemporalClient;
  /** Starts of workflows that may be under way at a time. */
  readonly starts: Turns;
  readonly log: Logger;
}

/**
 * Each start costs this process some milliseconds. When hundreds come at once, the first of them are started
 * and waited for while the others are read and answered; all at once would keep everybody waiting.
 */
export const STARTS_AT_ONCE_MAX = 4;

/** Specification section 4.4, `POST /invoke`. The invocation as it is at `byMs`, of `performance.now()`. */
export async function requestInvocation(
  deps: Invocations,
  request: NewInvocation,
  byMs: number,
): Promise<AdmitResult> {
  const admitted = await admitInvocation(deps.database, request);
  if (!('invocation' in admitted)) return admitted;
  const { kind, invocation } = admitted;
  if (invocation.endedAt !== null) return admitted;
  return { kind, invocation: await carriedOut(deps, invocation, byMs) };
}

/** Starts the workflow and waits for it; when that takes too long, it goes on by itself. */
async function carriedOut(
  { database, temporal, starts, log }: Invocations,
  invocation: Invocation,
  byMs: number,
): Promise<Invocation> {
  const leftMs = () => Math.max(byMs - performance.now(), 0);
  // A relay starts it instead, in a few seconds.
  if (!(await starts.take(leftMs()))) return invocation;
  try {
    await startInvocation(temporal, invocation, { timeoutMs: leftMs() });
  } catch (err) {
    log.warn({ err, invocationId: invocation.id }, 'a relay will start the invocation');
    return invocation;
  } finally {
    starts.giveBack();
  }
  await Promise.all([
    deleteNoticesOf(database, 'invocation', invocation.id),
    awaitInvocation(temporal, invocation.id, { timeoutMs: leftMs() }),
  ]);
  return (await findInvocation(database, invocation.id)) ?? invocation;
}
