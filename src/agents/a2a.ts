/**
 * Calls agents that speak A2A over JSON-RPC: version 1.0, or 0.3 for agents without 1.0. The payload becomes the
 * message's data, and its member `text` also the message's text. The message id is the invocation's id, so an agent can
 * recognize a repeated message. An agent that begins a task is sent no other message: later attempts ask for the task.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Message, SendMessageRequest, Task, TaskState } from '@a2a-js/sdk';
import { JsonRpcTransportFactory, type Transport } from '@a2a-js/sdk/client';
import { LegacyJsonRpcTransport } from '@a2a-js/sdk/compat/v0_3/client';
import type { AgentTask } from '../domain/invocation.ts';
import { FetchFault, type GuardedFetch } from '../egress/guarded-fetch.ts';
import {
  failed,
  type Adapter,
  type AgentAnswer,
  type AgentRequest,
  type NoteTask,
} from './adapter.ts';

/** The errors of an agent that does not know the method or the version: -32600, -32601, -32009. */
const NOT_UNDERSTOOD = new Set([-32600, -32601, -32009]);
/** The errors of an agent that no longer has the task (-32001), or that was replaced by one of another version. */
const LOST = new Set([-32001, ...NOT_UNDERSTOOD]);
/** JSON-RPC's internal error: what the status 500 is to HTTP. */
const INTERNAL_ERROR = -32603;
/** The interval between polls of a running task. */
const POLL_MS_MIN = 100;
const POLL_MS_MAX = 5_000;
/** A task's id is kept in the workflow's history. A longer one is not kept. */
const TASK_ID_MAX = 500;

export const callA2a: Adapter = async (request, guarded, noteTask) => {
  const { endpoint, task } = request;
  const options = { endpoint, fetchImpl: guarded.fetch };
  // The SDK reads the card only to choose a transport, and this code has chosen already.
  const current = await new JsonRpcTransportFactory(options).create(endpoint, undefined as never);
  const legacy = new LegacyJsonRpcTransport(options);
  if (task) {
    const transport = task.version === legacy.protocolVersion ? legacy : current;
    const answer = await undefinedOn(LOST, () => follow(transport, task, guarded));
    if (answer) return answer;
  }
  const converseBy = (transport: Transport) => converse(transport, request, guarded, noteTask);
  return (
    (await undefinedOn(NOT_UNDERSTOOD, () => converseBy(current))) ??
    (await converseBy(legacy).catch(refused))
  );
};

async function converse(
  transport: Transport,
  request: AgentRequest,
  guarded: GuardedFetch,
  noteTask: NoteTask,
): Promise<AgentAnswer> {
  const { protocolVersion: version } = transport;
  const answer = await transport.sendMessage(messageOf(request), {
    signal: guarded.signal,
    serviceParameters: { 'A2A-Version': version, 'Idempotency-Key': request.invocationId },
  });
  if (!('status' in answer)) return { kind: 'answered', value: Message.toJSON(answer) };
  const { id } = answer;
  if (id.length <= TASK_ID_MAX) noteTask({ version, id });
  return follow(transport, answer, guarded).catch(refused);
}

/** Asks for the task until it has ended. */
async function follow(
  transport: Transport,
  started: Task | AgentTask,
  { signal }: GuardedFetch,
): Promise<AgentAnswer> {
  const options = { signal, serviceParameters: { 'A2A-Version': transport.protocolVersion } };
  let task = 'status' in started ? started : undefined;
  for (let pollMs = POLL_MS_MIN; ; pollMs = Math.min(pollMs * 2, POLL_MS_MAX)) {
    task ??= await transport
      .getTask({ tenant: '', id: started.id }, options)
      .catch(unavailableIfInternal);
    const ended = endOf(task);
    if (ended) return ended;
    task = undefined;
    await delay(pollMs, undefined, { signal }).catch(() => {
      throw new FetchFault('unavailable', 'Its task is not done yet.');
    });
  }
}

function messageOf({ invocationId, capability, callerId, payload }: AgentRequest) {
  const text = typeof payload['text'] === 'string' ? [{ text: payload['text'] }] : [];
  return SendMessageRequest.fromJSON({
    message: {
      messageId: invocationId,
      role: 'ROLE_USER',
      parts: [...text, { data: payload }],
      metadata: { capability, callerId },
    },
    // Otherwise the task's id would come only when the task has ended.
    configuration: { returnImmediately: true },
  });
}

/** Undefined while the task is running. */
function endOf(task: Task): AgentAnswer | undefined {
  const said = task.status?.message?.parts
    .map(({ content }) => (content?.$case === 'text' ? content.value : ''))
    .join('\n');
  switch (task.status?.state) {
    case TaskState.TASK_STATE_COMPLETED:
      return { kind: 'answered', value: Task.toJSON(task) };
    case TaskState.TASK_STATE_FAILED:
    case TaskState.TASK_STATE_CANCELED:
      return failed('agent_error', said || 'The task failed.');
    case TaskState.TASK_STATE_REJECTED:
      return failed('agent_refused', said || 'The agent rejected the task.');
    case TaskState.TASK_STATE_INPUT_REQUIRED:
    case TaskState.TASK_STATE_AUTH_REQUIRED:
      return failed(
        'agent_refused',
        said || 'The agent asks for input or authorization, which an invocation cannot give.',
      );
    case TaskState.TASK_STATE_SUBMITTED:
    case TaskState.TASK_STATE_WORKING:
    case TaskState.TASK_STATE_UNSPECIFIED:
    case TaskState.UNRECOGNIZED:
    case undefined:
      return undefined;
  }
}

/** Reads the code from the SDK's error for a JSON-RPC error. */
function rpcCodeOf(error: unknown): number | undefined {
  const code = error instanceof Error && 'envelopeCode' in error ? error.envelopeCode : undefined;
  return typeof code === 'number' ? code : undefined;
}

/**
 * Unlike a message, a question about a task can be asked again. The task may still be running. This error goes into
 * the workflow's history, which must not keep the agent's own text.
 */
function unavailableIfInternal(error: unknown): never {
  if (rpcCodeOf(error) !== INTERNAL_ERROR) throw error;
  throw new FetchFault(
    'unavailable',
    `It answered a question about its task with ${INTERNAL_ERROR}.`,
  );
}

/** Undefined: the agent answered with one of these errors. */
async function undefinedOn(
  codes: ReadonlySet<number>,
  act: () => Promise<AgentAnswer>,
): Promise<AgentAnswer | undefined> {
  try {
    return await act();
  } catch (error) {
    return codes.has(rpcCodeOf(error) ?? 0) ? undefined : refused(error);
  }
}

function refused(error: unknown): AgentAnswer {
  const code = rpcCodeOf(error);
  if (code === undefined) throw error;
  return failed('agent_refused', describe(error));
}

function describe(error: unknown): string {
  return `${error instanceof Error ? error.message : ''} (${rpcCodeOf(error)})`;
}
