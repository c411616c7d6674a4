/** The interface of the adapters, one for each protocol. */
import type { AgentTask, InvocationError, InvocationErrorCode } from '../domain/invocation.ts';
import type { GuardedFetch } from '../egress/guarded-fetch.ts';

export interface AgentRequest {
  readonly protocol: string;
  readonly endpoint: string;
  readonly capability: string;
  readonly payload: Readonly<Record<string, unknown>>;
  /** The caller that the grant names. */
  readonly callerId: string;
  /** `inv_…`, which is also the idempotency key. */
  readonly invocationId: string;
  /** The task that an earlier attempt began. */
  readonly task?: AgentTask | undefined;
}

/** Called when the agent has begun a task that later attempts should ask for. */
export type NoteTask = (task: AgentTask) => void;

export type AgentAnswer =
  | { readonly kind: 'answered'; readonly value: unknown }
  /** Final: the same call would fail again. */
  | { readonly kind: 'failed'; readonly error: InvocationError }
  /** The outcome at the agent is unknown. The call may be repeated with the same idempotency key. */
  | {
      readonly kind: 'unavailable';
      readonly error: InvocationError;
      readonly retryAfterMs?: number;
    };

/** Returns an answer or throws. After a throw, the guarded fetch's fault explains the failure. */
export type Adapter = (
  request: AgentRequest,
  guarded: GuardedFetch,
  noteTask: NoteTask,
) => Promise<AgentAnswer>;

export function failed(code: InvocationErrorCode, message: string): AgentAnswer {
  return { kind: 'failed', error: { code, message } };
}
