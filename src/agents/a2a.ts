/**
 * Calls agents that speak A2A over JSON-RPC: version 1.0, or 0.3 for agents without 1.0. The payload becomes the
 * message's data, and its member `text` also the message's text. The message id is the invocation's id, so an agent can
 * recognize a repeated message.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Message, SendMessageRequest, Task, TaskState } from '@a2a-js/sdk';
import { JsonRpcTransportFactory, type Transport } from '@a2a-js/sdk/client';
import { LegacyJsonRpcTransport } from '@a2a-js/sdk/compat/v0_3/client';
import type { GuardedFetch } from '../egress/guarded-fetch.ts';
import { failed, type Adapter, type AgentAnswer, type AgentRequest } from './adapter.ts';

/** The errors of an agent that does not know the method or the version: -32600, -32601, -32009. */
const NOT_UNDERSTOOD = new Set([-32600, -32601, -32009]);
/** The interval between polls of a running task. */
const POLL_MS_MIN = 250;
const POLL_MS_MAX = 5_000;

export const callA2a: Adapter = async (request, guarded) => {
  const { endpoint } = request;
  const options = { endpoint, fetchImpl: guarded.fetch };
  // The SDK reads the card only to choose a transport, and this code has chosen already.
  const current = await new JsonRpcTransportFactory(options).create(endpoint, undefined as never);
  try {
    return await converse(current, request, guarded);
  } catch (error) {
    const code = rpcCodeOf(error);
    if (code === undefined) throw error;
    if (!NOT_UNDERSTOOD.has(code)) return refusal(error, code);
  }
  try {
    return await converse(new LegacyJsonRpcTransport(options), request, guarded);
  } catch (error) {
    const code = rpcCodeOf(error);
    if (code === undefined) throw error;
    return refusal(error, code);
  }
};

async function converse(
  transport: Transport,
  request: AgentRequest,
  guarded: GuardedFetch,
): Promise<AgentAnswer> {
  const options = {
    signal: guarded.signal,
    serviceParameters: {
      'A2A-Version': transport.protocolVersion,
      'Idempotency-Key': request.invocationId,
    },
  };
  let answer = await transport.sendMessage(messageOf(request), options);
  for (let pollMs = POLL_MS_MIN; 'status' in answer; pollMs = Math.min(pollMs * 2, POLL_MS_MAX)) {
    const ended = endOf(answer);
    if (ended) return ended;
    await delay(pollMs, undefined, { signal: guarded.signal });
    const { 'A2A-Version': version } = options.serviceParameters;
    answer = await transport.getTask(
      { tenant: '', id: answer.id },
      { signal: guarded.signal, serviceParameters: { 'A2A-Version': version } },
    );
  }
  return { kind: 'answered', value: Message.toJSON(answer) };
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
    configuration: { returnImmediately: false },
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

function refusal(error: unknown, code: number): AgentAnswer {
  return failed('agent_refused', `${error instanceof Error ? error.message : ''} (${code})`);
}
