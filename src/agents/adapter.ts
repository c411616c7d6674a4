/** What an adapter, one for each protocol, is asked and answers. */
import type { InvocationError, InvocationErrorCode } from '../domain/invocation.ts';
import type { Line } from '../egress/line.ts';

export interface AgentRequest {
  readonly protocol: string;
  readonly endpoint: string;
  readonly capability: string;
  readonly payload: Readonly<Record<string, unknown>>;
  /** Who calls, as the grant says. */
  readonly callerId: string;
  /** `inv_…`: also the idempotency key. */
  readonly invocationId: string;
}

export type AgentAnswer =
  | { readonly kind: 'answered'; readonly value: unknown }
  /** The same call would fail again. */
  | { readonly kind: 'failed'; readonly error: InvocationError }
  /** Nobody knows whether the agent did it; the same idempotency key may be sent again. */
  | {
      readonly kind: 'unavailable';
      readonly error: InvocationError;
      readonly retryAfterMs?: number;
    };

/** Gives an answer, or throws: what the line met then says what it means. */
export type Adapter = (request: AgentRequest, line: Line) => Promise<AgentAnswer>;

export function failed(code: InvocationErrorCode, message: string): AgentAnswer {
  return { kind: 'failed', error: { code, message } };
}
