/** What the starts of all our workflows share: their policies, their search attributes, and how a call ended. */
import {
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import type { SearchAttributeName } from '../domain/search-attributes.ts';
import type { TemporalClient } from './client.ts';

export type Answer<T> =
  | { readonly kind: 'answered'; readonly value: T }
  /** No answer in time; what was asked for may still happen. */
  | { readonly kind: 'timed_out' }
  /** No answer, or a refusal; what was asked for may still happen. */
  | { readonly kind: 'unavailable'; readonly error: unknown }
  /** The workflow has ended; its row says how. */
  | { readonly kind: 'closed' };

/** Nobody waits for the answer of such a call; the relay makes it again when it takes longer. */
export const REPORT_TIMEOUT_MS = 5_000;

/**
 * A start joins the workflow that runs, never makes another one of one that has ended, and begins one anew that was
 * terminated: its row says that it has not come to its end.
 */
export const ONE_END = {
  workflowIdConflictPolicy: 'USE_EXISTING',
  workflowIdReusePolicy: 'ALLOW_DUPLICATE_FAILED_ONLY',
} as const;

/** A workflow that has ended, and may not begin again, has nothing to learn. */
export async function unlessEnded(
  { client }: TemporalClient,
  timeoutMs: number,
  start: () => Promise<void>,
): Promise<void> {
  try {
    await client.withDeadline(Date.now() + timeoutMs, start);
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
