/** The life of an invocation (legacy, specification section 4.4): its states, and why one fails. */
import { jittered } from './retries.ts';

/** `pending`: the workflow has not started on it. `running`: the agent is being called. */
export const INVOCATION_STATUSES = ['pending', 'running', 'succeeded', 'failed'] as const;
export type InvocationStatus = (typeof INVOCATION_STATUSES)[number];

/** Of one account. While Temporal is down, nothing else keeps its invocations from piling up. */
export const OPEN_INVOCATIONS_MAX = 10_000;

/** Error codes of attempts and invocations, with their meanings. */
export const INVOCATION_ERRORS = {
  agent_unavailable: 'The agent could not be reached, was overloaded, or did not answer in time.',
  agent_refused: 'The agent answered that it will not do this; the same call would fail again.',
  agent_error: 'The agent took the call and answered that it failed.',
  invalid_answer: 'The agent answered something that its protocol does not allow.',
  answer_too_large: 'The answer is larger than 1 MB.',
  endpoint_not_allowed: 'The agent is at an address that may not be called.',
  protocol_not_supported: 'Agents of this protocol are found, but cannot be invoked.',
  deadline_exceeded: 'The agent did not answer in the time that an invocation has.',
  canceled: 'An operator ended the invocation.',
} as const satisfies Record<string, string>;

export type InvocationErrorCode = keyof typeof INVOCATION_ERRORS;

export interface InvocationError {
  readonly code: InvocationErrorCode;
  readonly message: string;
}

/** The type of an attempt's failure when its worker stopped before the agent answered. It does not count. */
export const CUT_OFF = 'worker_stopped';

/** An invocation without the agent's answer, which workflow histories must not keep. */
export interface InvocationView {
  readonly status: InvocationStatus;
  readonly attempts: number;
  /** Why it failed or, while it runs, why the last attempt failed. */
  readonly error: InvocationError | null;
}

/** An error's text may come from the agent, so it is truncated wherever it is stored. */
export const ERROR_MESSAGE_MAX = 500;

/** After an outage of any length, an agent is called again within little more than this. */
export const RETRY_MS_MAX = 60_000;
const RETRY_MS_MIN = 1_000;

/**
 * The delay between a failed attempt and the next one: 1 s, then doubling, with jitter by `chance` from 0 to 1.
 */
export function retryDelayMs(failures: number, chance: number): number {
  const doubled = Math.min(RETRY_MS_MIN * 2 ** (failures - 1), RETRY_MS_MAX);
  return jittered(doubled, chance);
}
