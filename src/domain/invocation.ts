/** The life of an invocation (legacy, specification section 4.4): its states, and why one fails. */
import { jittered } from './retries.ts';

/** `pending`: the workflow has not started on it. `running`: the agent is being called. */
export const INVOCATION_STATUSES = ['pending', 'running', 'succeeded', 'failed'] as const;
export type InvocationStatus = (typeof INVOCATION_STATUSES)[number];

/** The most open invocations of one account. While Temporal is down, nothing else keeps them from piling up. */
export const OPEN_INVOCATIONS_MAX = 10_000;

/** Error codes of attempts and invocations, with their meanings. */
export const INVOCATION_ERRORS = {
  agent_unavailable: 'The agent could not be reached, was overloaded, or did not respond in time.',
  agent_refused: 'The agent refused the call; the same call would fail again.',
  agent_error: 'The agent accepted the call and reported that it failed.',
  invalid_answer: 'The response of the agent does not follow its protocol.',
  answer_too_large: 'The response of the agent is larger than 1 MB.',
  endpoint_not_allowed: 'Farebox may not call the address of this agent.',
  protocol_not_supported: 'Farebox can find agents of this protocol, but cannot invoke them.',
  deadline_exceeded: 'The agent did not respond before the deadline of the invocation.',
  canceled: 'An operator ended the invocation.',
} as const satisfies Record<string, string>;

export type InvocationErrorCode = keyof typeof INVOCATION_ERRORS;

export interface InvocationError {
  readonly code: InvocationErrorCode;
  readonly message: string;
}

/** A task that an A2A agent began for an invocation. Later attempts ask for it and do not send the message again. */
export interface AgentTask {
  /** The version of the protocol that the agent understood. */
  readonly version: string;
  /** As the agent named it. */
  readonly id: string;
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
