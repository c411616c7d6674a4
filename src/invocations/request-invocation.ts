/**
 * Requests an invocation: first its row, then its workflow. Once the row exists the agent will be called, even when
 * Temporal cannot be reached now: a relay starts the workflows that this could not.
 */
import type { Logger } from 'pino';
import type { Database } from '../store/database.ts';
import { isDatabaseUnavailable } from '../store/failures.ts';
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
import type { Semaphore } from './semaphore.ts';

export interface RequestInvocationDeps {
  /** Connections for grants and invocations alone, so that no reads delay them. */
  readonly database: Database;
  readonly temporal: TemporalClient;
  /** The most workflow starts in progress at a time. */
  readonly starts: Semaphore;
  readonly log: Logger;
}

/**
 * Each start takes this process some milliseconds. When hundreds of requests arrive together, it starts and awaits the
 * first ones while it reads and answers the others; starting all at once would delay every answer.
 */
export const STARTS_AT_ONCE_MAX = 4;

/**
 * Specification section 4.4, `POST /invoke`. Resolves with the invocation's state at `byMs`, a time of
 * `performance.now()`.
 */
export async function requestInvocation(
  deps: RequestInvocationDeps,
  request: NewInvocation,
  byMs: number,
): Promise<AdmitResult> {
  const admitted = await admitInvocation(deps.database, request);
  if (!('invocation' in admitted)) return admitted;
  const { kind, invocation } = admitted;
  if (invocation.endedAt !== null) return admitted;
  return { kind, invocation: await carriedOut(deps, invocation, byMs) };
}

/** Starts the workflow and waits for its end, up to the deadline. The workflow continues without the caller. */
async function carriedOut(
  { database, temporal, starts, log }: RequestInvocationDeps,
  invocation: Invocation,
  byMs: number,
): Promise<Invocation> {
  const leftMs = () => Math.max(byMs - performance.now(), 0);
  // A relay will start it instead, within a few seconds.
  if (!(await starts.acquire(leftMs()))) return invocation;
  try {
    await startInvocation(temporal, invocation, { timeoutMs: leftMs() });
  } catch (err) {
    log.warn({ err, invocationId: invocation.id }, 'a relay will start the invocation');
    return invocation;
  } finally {
    starts.release();
  }
  try {
    await Promise.all([
      deleteNoticesOf(database, 'invocation', invocation.id),
      awaitInvocation(temporal, invocation.id, { timeoutMs: leftMs() }),
    ]);
    return (await findInvocation(database, invocation.id)) ?? invocation;
  } catch (err) {
    // It is carried out all the same.
    if (!isDatabaseUnavailable(err)) throw err;
    log.warn({ err, invocationId: invocation.id }, 'could not read how far an invocation is');
    return invocation;
  }
}
