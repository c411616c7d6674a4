/** Shared by the starts of all workflows: policies, search attributes, and the result of a call. */
import {
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
  type WorkflowClient,
} from '@temporalio/client';
import type { SearchAttributeName } from '../domain/search-attributes.ts';
import type { Deployed, TemporalClient } from './client.ts';

export type Answer<T> =
  | { readonly kind: 'answered'; readonly value: T }
  /** No answer in time; the request may still take effect. */
  | { readonly kind: 'timed_out' }
  /** No answer, or a refusal; the request may still take effect. */
  | { readonly kind: 'unavailable'; readonly error: unknown }
  /** The workflow has ended; its row says how. */
  | { readonly kind: 'closed' };

/** For calls whose answer nobody waits for. The relay repeats a call that takes longer. */
const REPORT_TIMEOUT_MS = 5_000;

/**
 * Rejects when Temporal does not answer in time. The call must be safe to repeat: it is sent again when it
 * fails because its connection was replaced meanwhile (keep-connected.ts).
 */
export async function inTime<T>(
  temporal: TemporalClient,
  call: (workflow: WorkflowClient) => Promise<T>,
  timeoutMs = REPORT_TIMEOUT_MS,
): Promise<T> {
  const deadlineMs = Date.now() + timeoutMs;
  for (;;) {
    const { client } = temporal;
    try {
      return await client.withDeadline(deadlineMs, () => call(client.workflow));
    } catch (error) {
      if (client === temporal.client || answerOf(error).kind !== 'unavailable') throw error;
    }
  }
}

/**
 * How long a worker may take for a workflow task. One that was handed to a connection that is dead is handed
 * out again after this; the default is 10 s. Temporal itself allows more time from the fourth attempt on, so
 * a slow worker comes to an end.
 */
const TASK_TIMEOUT_MS = 5_000;

/** Where a workflow runs, and within which time a worker has to answer for it. */
export function runsOn({ taskQueue }: Deployed) {
  return { taskQueue, workflowTaskTimeout: TASK_TIMEOUT_MS } as const;
}

/**
 * A start joins a running workflow. One that was terminated or failed starts again. One that completed starts
 * again only if its row is open all the same: Postgres was restored to a moment before the end.
 */
export function idPoliciesOf(row: 'open' | 'ended') {
  return {
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: row === 'open' ? 'ALLOW_DUPLICATE' : 'ALLOW_DUPLICATE_FAILED_ONLY',
  } as const;
}

/**
 * Options of an update that callers repeat: the later ones get the answer of the first. A run takes 2,000 updates in
 * all, and would refuse those of operators once callers had used them up.
 */
export function onceARun({ name }: { readonly name: string }) {
  return { updateId: name };
}

/** Ignores the refusal to restart a completed workflow whose row has ended: nothing is left to do. */
export async function unlessEnded(
  temporal: TemporalClient,
  start: (workflow: WorkflowClient) => Promise<unknown>,
): Promise<void> {
  try {
    await inTime(temporal, start);
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}

export function keyword(name: SearchAttributeName, value: string) {
  return { key: { name, type: 'KEYWORD' as const }, value };
}

export function double(name: SearchAttributeName, value: number) {
  return { key: { name, type: 'DOUBLE' as const }, value };
}

export function answerOf(error: unknown): Answer<never> {
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return { kind: 'timed_out' };
  if (
    error instanceof WorkflowExecutionAlreadyStartedError ||
    error instanceof WorkflowNotFoundError ||
    error instanceof WorkflowUpdateFailedError
  ) {
    return { kind: 'closed' };
  }
  return { kind: 'unavailable', error };
}
