/**
 * One attempt to call an agent by its protocol. Every outcome is data: an answer, a final failure, or a reason to try
 * again. All attempts of an invocation carry the same idempotency key.
 */
import { callableProtocol, type AgentProtocol } from '../domain/agent-protocol.ts';
import { INVOCATION_ERRORS, type InvocationErrorCode } from '../domain/invocation.ts';
import { isNestedDeeperThan, NESTING_MAX } from '../domain/nesting.ts';
import {
  FetchFault,
  openGuardedFetch,
  type FaultKind,
  type GuardedFetch,
} from '../egress/guarded-fetch.ts';
import { callA2a } from './a2a.ts';
import {
  failed,
  type Adapter,
  type AgentAnswer,
  type AgentRequest,
  type NoteTask,
} from './adapter.ts';
import { callHttp } from './http.ts';
import { callMcp } from './mcp.ts';

export interface CallOptions {
  readonly allowPrivate: boolean;
  /** Aborts when the attempt times out. */
  readonly signal: AbortSignal;
  readonly noteTask?: NoteTask;
}

const ANSWER_BYTES_MAX = 1_000_000;

const ADAPTERS: Readonly<Record<AgentProtocol, Adapter>> = {
  http: callHttp,
  mcp: callMcp,
  a2a: callA2a,
};

const CODE_OF: Readonly<Record<FaultKind, InvocationErrorCode>> = {
  unavailable: 'agent_unavailable',
  denied: 'endpoint_not_allowed',
  redirected: 'agent_refused',
  too_large: 'answer_too_large',
};

export async function callAgent(
  request: AgentRequest,
  { allowPrivate, signal, noteTask = () => {} }: CallOptions,
): Promise<AgentAnswer> {
  const protocol = callableProtocol(request.protocol);
  if (!protocol) {
    return failed('protocol_not_supported', `Agents of "${request.protocol}" cannot be invoked.`);
  }
  const guarded = openGuardedFetch({ allowPrivate, signal, bytesMax: ANSWER_BYTES_MAX });
  try {
    return checked(await ADAPTERS[protocol](request, guarded, noteTask));
  } catch (error) {
    return meaningOf(error, guarded);
  } finally {
    await guarded.close();
  }
}

/** An answer that cannot be stored would make the agent be called until the deadline. */
function checked(answer: AgentAnswer): AgentAnswer {
  return answer.kind === 'answered' && isNestedDeeperThan(NESTING_MAX, answer.value)
    ? failed('invalid_answer', `Its answer is nested more than ${NESTING_MAX} levels deep.`)
    : answer;
}

function meaningOf(error: unknown, guarded: GuardedFetch): AgentAnswer {
  const fault = error instanceof FetchFault ? error : guarded.fault;
  if (fault && fault.kind !== 'unavailable') return failed(CODE_OF[fault.kind], fault.message);
  if (fault || guarded.signal.aborted) {
    return {
      kind: 'unavailable',
      error: {
        code: 'agent_unavailable',
        message: fault?.message ?? 'It did not answer in time.',
      },
      ...(fault?.retryAfterMs !== undefined && { retryAfterMs: fault.retryAfterMs }),
    };
  }
  const { status = 0 } = guarded;
  if (status >= 400) return failed('agent_refused', `It answered ${status}.`);
  return failed('invalid_answer', [INVOCATION_ERRORS.invalid_answer, ...causeOf(error)].join(' '));
}

/** Only the first line: behind it, the schema library of the MCP SDK prints each problem as JSON. */
function causeOf(error: unknown): readonly string[] {
  const said = error instanceof Error ? error.message : String(error);
  const [line = ''] = said.split('\n', 1);
  const cause = line.replace(/[\s:[{.]+$/, '');
  return cause === '' ? [] : [`${cause}.`];
}
