/** Agents that speak A2A 1.0 and 0.3: messages, and tasks that end at once, later, well and badly. */
import assert from 'node:assert/strict';
import type { AgentAnswer } from '../../src/agents/adapter.ts';
import type { AgentTask } from '../../src/domain/invocation.ts';
import { callAgent } from '../../src/agents/call.ts';
import { sendJson, startAgent, type AgentCall, type TestAgent } from '../support/agents.ts';

const INVOCATION_ID = 'inv_0190b3a01c2d7e3f8a4b5c6d7e8f9a0b';

interface Rpc {
  readonly id: unknown;
  readonly method: string;
  readonly params: Record<string, unknown>;
}

/** Members of a JSON-RPC reply. */
type Said = { readonly result: unknown } | { readonly error: object };
type Say = (rpc: Rpc, call: AgentCall) => Said;

const methodNotFound = { error: { code: -32601, message: 'Method not found' } };
const task = (state: string, text?: string) => ({
  id: 'task-1',
  contextId: 'context-1',
  status: {
    state,
    ...(text !== undefined && {
      message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text }] },
    }),
  },
});
/** As a version of the protocol shows it to who asks for it. */
const shownTask = (version: string, state: string): Said =>
  version === '1.0'
    ? { result: task(`TASK_STATE_${state.toUpperCase()}`) }
    : { result: { kind: 'task', id: 'task-1', contextId: 'c', status: { state } } };
/** The 1.0 reply to `SendMessage`. */
const taskOf = (state: string, text?: string): Said => ({ result: { task: task(state, text) } });

function rpcOf(seen: AgentCall | undefined): Rpc {
  assert.ok(seen);
  return seen.body as Rpc;
}

describe('an agent by a2a', () => {
  let agent: TestAgent | undefined;
  const noted: AgentTask[] = [];
  afterEach(() => agent?.stop());

  async function call(
    say: Say,
    payload: Record<string, unknown> = { n: 1 },
    { task, timeoutMs = 10_000 }: { task?: AgentTask; timeoutMs?: number } = {},
  ): Promise<AgentAnswer> {
    noted.length = 0;
    agent = await startAgent((request, response) => {
      const rpc = request.body as Rpc;
      sendJson(response, { jsonrpc: '2.0', id: rpc.id, ...say(rpc, request) });
    });
    const request = {
      protocol: 'a2a',
      endpoint: agent.url,
      capability: 'translate',
      callerId: 'caller',
      invocationId: INVOCATION_ID,
      task,
    };
    const signal = AbortSignal.timeout(timeoutMs);
    const noteTask = (begun: AgentTask) => void noted.push(begun);
    return callAgent({ ...request, payload }, { allowPrivate: true, signal, noteTask });
  }

  const methods = () => agent?.calls.map(({ body }) => (body as Rpc).method);

  it('gets a 1.0 message with the payload, the capability and the invocation’s id', async () => {
    const answer = await call(
      (rpc) => ({
        result: {
          message: { messageId: 'm1', role: 'ROLE_AGENT', parts: [{ data: { got: rpc.params } }] },
        },
      }),
      { text: 'otter', to: 'de' },
    );
    assert.ok(answer.kind === 'answered', JSON.stringify(answer));
    assert.deepEqual(methods(), ['SendMessage']);
    const [first] = agent?.calls ?? [];
    assert.equal(first?.headers['idempotency-key'], INVOCATION_ID);
    assert.equal(first?.headers['a2a-version'], '1.0');
    const { message } = rpcOf(first).params as { message: Record<string, unknown> };
    assert.equal(message['messageId'], INVOCATION_ID);
    assert.deepEqual(message['metadata'], { capability: 'translate', callerId: 'caller' });
    const parts = message['parts'] as Record<string, unknown>[];
    assert.deepEqual(
      [parts[0]?.['text'], parts[1]?.['data']],
      ['otter', { text: 'otter', to: 'de' }],
    );
    const value = answer.value as { parts: { data: unknown }[] };
    assert.deepEqual(value.parts[0]?.data, { got: rpcOf(first).params });
  });

  it('answers with the finished task', async () => {
    const answer = await call(() => taskOf('TASK_STATE_COMPLETED', 'done'));
    assert.ok(answer.kind === 'answered', JSON.stringify(answer));
    assert.equal((answer.value as { id: string }).id, 'task-1');
  });

  it('is polled until the task is done', async () => {
    const states = ['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED'];
    const answer = await call((rpc) =>
      rpc.method === 'SendMessage'
        ? taskOf('TASK_STATE_SUBMITTED')
        : { result: task(states.shift() ?? '') },
    );
    assert.equal(answer.kind, 'answered', JSON.stringify(answer));
    assert.deepEqual(methods(), ['SendMessage', 'GetTask', 'GetTask']);
    assert.deepEqual([...(agent?.effects ?? [])], [INVOCATION_ID]);
  });

  const ends: readonly (readonly [state: string, code: string])[] = [
    ['TASK_STATE_FAILED', 'agent_error'],
    ['TASK_STATE_CANCELED', 'agent_error'],
    ['TASK_STATE_REJECTED', 'agent_refused'],
    ['TASK_STATE_INPUT_REQUIRED', 'agent_refused'],
    ['TASK_STATE_AUTH_REQUIRED', 'agent_refused'],
  ];
  for (const [state, code] of ends) {
    it(`has failed with ${code} when its task is in ${state}`, async () => {
      assert.deepEqual(await call(() => taskOf(state, 'because')), {
        kind: 'failed',
        error: { code, message: 'because' },
      });
    });
  }

  for (const code of [-32601, -32600, -32009]) {
    it(`is called by 0.3 when it answers ${code} to 1.0`, async () => {
      const answer = await call((rpc) =>
        rpc.method === 'message/send'
          ? {
              result: {
                kind: 'task',
                id: 'task-1',
                contextId: 'c',
                status: { state: 'completed' },
              },
            }
          : { error: { code, message: 'what?' } },
      );
      assert.ok(answer.kind === 'answered', JSON.stringify(answer));
      assert.deepEqual(methods(), ['SendMessage', 'message/send']);
      const second = agent?.calls[1];
      const { message } = rpcOf(second).params as { message: { messageId: string } };
      assert.equal(message.messageId, INVOCATION_ID);
      assert.equal(second?.headers['a2a-version'], '0.3');
    });
  }

  it('is polled by 0.3 for a 0.3 task', async () => {
    const says: Record<string, Said> = {
      SendMessage: methodNotFound,
      'message/send': {
        result: { kind: 'task', id: 't', contextId: 'c', status: { state: 'working' } },
      },
      'tasks/get': {
        result: { kind: 'task', id: 't', contextId: 'c', status: { state: 'failed' } },
      },
    };
    const answer = await call((rpc) => says[rpc.method] ?? methodNotFound);
    assert.ok(answer.kind === 'failed', JSON.stringify(answer));
    assert.equal(answer.error.code, 'agent_error');
    assert.deepEqual(methods(), ['SendMessage', 'message/send', 'tasks/get']);
  });

  describe('that needs longer than an attempt', () => {
    for (const [version, send, get] of [
      ['1.0', 'SendMessage', 'GetTask'],
      ['0.3', 'message/send', 'tasks/get'],
    ] as const) {
      it(`names its task of version ${version} at once, and later attempts ask for that`, async () => {
        const first = await call(
          (rpc) => {
            if (rpc.method === get) return shownTask(version, 'working');
            if (rpc.method !== send) return methodNotFound;
            return version === '1.0'
              ? taskOf('TASK_STATE_SUBMITTED')
              : shownTask(version, 'submitted');
          },
          {},
          { timeoutMs: 2_500 },
        );
        assert.deepEqual(first, {
          kind: 'unavailable',
          error: { code: 'agent_unavailable', message: 'Its task is not done yet.' },
        });
        assert.deepEqual(noted, [{ version, id: 'task-1' }]);
        const sent = agent?.calls.map(({ body }) => body as Rpc).find((rpc) => rpc.method === send);
        const asked = sent?.params['configuration'] as Record<string, unknown> | undefined;
        assert.ok(version === '1.0' ? asked?.['returnImmediately'] : asked?.['blocking'] === false);
        await agent?.stop();

        const [known] = noted;
        const states = ['working', 'completed'];
        const later = await call(
          (rpc) => (rpc.method === get ? shownTask(version, states.shift() ?? '') : methodNotFound),
          {},
          known && { task: known },
        );
        assert.equal(later.kind, 'answered', JSON.stringify(later));
        assert.deepEqual(methods(), [get, get]);
        assert.equal(agent?.calls[0]?.headers['a2a-version'], version);
      });
    }

    it('is unavailable when it answers with an internal error to who asks for the task, and its text is dropped', async () => {
      const broken = { error: { code: -32603, message: 'jane@example.com has no such row' } };
      const unavailable = {
        kind: 'unavailable',
        error: {
          code: 'agent_unavailable',
          message: 'It answered a question about its task with -32603.',
        },
      };
      const begun = (rpc: Rpc) =>
        rpc.method === 'SendMessage' ? taskOf('TASK_STATE_WORKING') : broken;
      assert.deepEqual(await call(begun), unavailable);
      assert.deepEqual(methods(), ['SendMessage', 'GetTask']);
      await agent?.stop();
      assert.deepEqual(
        await call(begun, {}, { task: { version: '1.0', id: 'task-1' } }),
        unavailable,
      );
      assert.deepEqual(methods(), ['GetTask']);
      await agent?.stop();
      const old = (rpc: Rpc) => (rpc.method === 'tasks/get' ? broken : methodNotFound);
      assert.deepEqual(
        await call(old, {}, { task: { version: '0.3', id: 'task-1' } }),
        unavailable,
      );
    });

    it('has refused when it answers with an internal error to the message', async () => {
      const answer = await call(() => ({ error: { code: -32603, message: 'Internal error' } }));
      assert.deepEqual(answer, {
        kind: 'failed',
        error: { code: 'agent_refused', message: 'Internal error (-32603)' },
      });
    });

    it('is sent the message again, under the same id, when it has lost the task', async () => {
      const lost = { error: { code: -32001, message: 'Task not found' } };
      const answer = await call(
        (rpc) => (rpc.method === 'SendMessage' ? taskOf('TASK_STATE_COMPLETED') : lost),
        {},
        { task: { version: '1.0', id: 'gone' } },
      );
      assert.equal(answer.kind, 'answered', JSON.stringify(answer));
      assert.deepEqual(methods(), ['GetTask', 'SendMessage']);
    });

    it('is not sent the message by another version when it cannot be asked for its task', async () => {
      const answer = await call((rpc) =>
        rpc.method === 'SendMessage' ? taskOf('TASK_STATE_WORKING') : methodNotFound,
      );
      assert.equal(answer.kind, 'failed', JSON.stringify(answer));
      assert.deepEqual(methods(), ['SendMessage', 'GetTask']);
    });
  });

  it('has refused when it answers with its own error', async () => {
    const answer = await call(() => ({ error: { code: -32602, message: 'no such language' } }));
    assert.deepEqual(answer, {
      kind: 'failed',
      error: { code: 'agent_refused', message: 'no such language (-32602)' },
    });
  });

  it('has refused when it understands neither version', async () => {
    const answer = await call(() => methodNotFound);
    assert.deepEqual(answer, {
      kind: 'failed',
      error: { code: 'agent_refused', message: 'Method not found (-32601)' },
    });
  });
});
