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
} from '../store/invocations.ts';
import { deleteNoticesOf } from '../store/outbox.ts';
import { awaitInvocation, startInvocation, type TemporalClient } from './client.ts';

export interface Invocations {
  readonly database: Database;
  readonly temporal: TemporalClient;
  readonly log: Logger;
}

/** Of the two seconds in which the caller gets an answer, what Temporal and the agent may take. */
const ANSWER_TIMEOUT_MS = 1_700;

/** Specification section 4.4, `POST /invoke`. The invocation as it is after a moment. */
export async function requestInvocation(
  deps: Invocations,
  request: NewInvocation,
): Promise<AdmitResult> {
  const byMs = performance.now() + ANSWER_TIMEOUT_MS;
  const admitted = await admitInvocation(deps.database, request);
  if (!('invocation' in admitted)) return admitted;
  const { kind, invocation } = admitted;
  if (invocation.endedAt !== null) return admitted;
  return { kind, invocation: await carriedOut(deps, invocation, byMs) };
}

/** Starts the workflow and waits for it; when that takes too long, it goes on by itself. */
async function carriedOut(
  { database, temporal, log }: Invocations,
  invocation: Invocation,
  byMs: number,
): Promise<Invocation> {
  const leftMs = () => Math.max(byMs - performance.now(), 0);
  try {
    await startInvocation(temporal, invocation, { timeoutMs: leftMs() });
  } catch (err) {
    log.warn({ err, invocationId: invocation.id }, 'a relay will start the invocation');
    return invocation;
  }
  await Promise.all([
    deleteNoticesOf(database, 'invocation', invocation.id),
    awaitInvocation(temporal, invocation.id, { timeoutMs: leftMs() }),
  ]);
  return (await findInvocation(database, invocation.id)) ?? invocation;
}
