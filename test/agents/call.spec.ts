/** The result of one attempt to call an agent, for each protocol and each behavior of the agent. */
import assert from 'node:assert/strict';
import { callAgent } from '../../src/agents/call.ts';
import type { AgentAnswer, AgentRequest } from '../../src/agents/adapter.ts';
import { echo, sendJson, startAgent, type Respond, type TestAgent } from '../support/agents.ts';
import { until } from '../support/stack.ts';

const INVOCATION_ID = 'inv_0190b3a01c2d7e3f8a4b5c6d7e8f9a0b';

function call(
  { url }: Pick<TestAgent, 'url'>,
  changes: Partial<AgentRequest> = {},
  { timeoutMs = 10_000, allowPrivate = true } = {},
): Promise<AgentAnswer> {
  const request = {
    protocol: 'http',
    endpoint: url,
    capability: 'translate',
    payload: { text: 'otter', to: 'de' },
    callerId: 'caller',
    invocationId: INVOCATION_ID,
  };
  const signal = AbortSignal.timeout(timeoutMs);
  return callAgent({ ...request, ...changes }, { allowPrivate, signal });
}

function assertFailed(answer: AgentAnswer, code: string, message: RegExp): void {
  assert.equal(answer.kind, 'failed', JSON.stringify(answer));
  assert.ok('error' in answer);
  assert.equal(answer.error.code, code);
  assert.match(answer.error.message, message);
}

describe('an agent', () => {
  const agents: TestAgent[] = [];
  afterEach(() => Promise.all(agents.splice(0).map((agent) => agent.stop())));

  async function agentThat(respond: Respond): Promise<TestAgent> {
    const agent = await startAgent(respond);
    agents.push(agent);
    return agent;
  }

  it('is not called when its protocol cannot be invoked', async () => {
    const agent = await agentThat(echo);
    assertFailed(await call(agent, { protocol: 'acp' }), 'protocol_not_supported', /"acp"/);
    assert.deepEqual(agent.calls, []);
  });

  it('is called by its protocol in letters of either case', async () => {
    const agent = await agentThat(echo);
    assert.equal((await call(agent, { protocol: 'HTTP' })).kind, 'answered');
  });

  for (const [protocol, answer, cause] of [
    ['mcp', { hello: 1 }, / Version negotiation probe failed\.$/],
    ['mcp', { jsonrpc: '2.0', id: 1, error: { code: 'no', message: 7 } }, / probe failed\.$/],
    ['a2a', { hello: 1 }, / expected 'jsonrpc' to be exactly '2\.0', got undefined\.$/],
  ] as const) {
    it(`by ${protocol} that answers ${JSON.stringify(answer)} is told in a line that it breaks its protocol`, async () => {
      const agent = await agentThat((_, response) => sendJson(response, answer));
      const failed = await call(agent, { protocol });
      assertFailed(failed, 'invalid_answer', /^The response of the agent does not follow its/);
      assertFailed(failed, 'invalid_answer', cause);
      assertFailed(failed, 'invalid_answer', /^[^\n]+$/);
    });
  }

  for (const protocol of ['http', 'mcp', 'a2a']) {
    describe(`by ${protocol}`, () => {
      it('is not called at an address that is not public', async () => {
        const agent = await agentThat(echo);
        const answer = await call(agent, { protocol }, { allowPrivate: false });
        assertFailed(answer, 'endpoint_not_allowed', /public address/);
        assert.deepEqual(agent.calls, []);
      });

      it('is called again later when the connection fails', async () => {
        const agent = await agentThat(echo);
        await agent.stop();
        agents.pop();
        const answer = await call(agent, { protocol });
        assert.equal(answer.kind, 'unavailable', JSON.stringify(answer));
        assert.match(answer.error.message, /ECONNREFUSED/);
      });

      for (const status of [409, 429, 500, 503]) {
        it(`is called again after ${status}, no sooner than it asks`, async () => {
          const agent = await agentThat(
            (_, response) => void response.writeHead(status, { 'retry-after': '3' }).end(),
          );
          const answer = await call(agent, { protocol });
          assert.deepEqual(answer, {
            kind: 'unavailable',
            error: { code: 'agent_unavailable', message: `It answered ${status}.` },
            retryAfterMs: 3_000,
          });
        });
      }

      it('is called again later when it does not answer in time', async () => {
        const answer = await call(await agentThat(() => {}), { protocol }, { timeoutMs: 300 });
        assert.equal(answer.kind, 'unavailable', JSON.stringify(answer));
        assert.match(answer.error.message, /in time/);
      });

      it('has no connection left after the call', async () => {
        const agent = await agentThat(echo);
        await call(agent, { protocol });
        assert.ok(agent.calls.length > 0);
        await until(async () => (await agent.countConnections()) === 0);
      });

      for (const status of [400, 401, 403, 404, 409, 422]) {
        it(`has refused when it answers ${status}`, async () => {
          const agent = await agentThat((_, response) =>
            sendJson(response, { no: 'never' }, status),
          );
          assertFailed(await call(agent, { protocol }), 'agent_refused', new RegExp(`${status}`));
        });
      }

      it('is not followed to a redirect', async () => {
        const target = await agentThat(echo);
        const agent = await agentThat(
          (_, response) => void response.writeHead(307, { location: target.url }).end(),
        );
        assertFailed(await call(agent, { protocol }), 'agent_refused', /redirect/);
        assert.deepEqual(target.calls, []);
      });

      it('may not answer with more than a megabyte', async () => {
        const agent = await agentThat((_, response) => sendJson(response, 'x'.repeat(1_000_001)));
        assertFailed(await call(agent, { protocol }), 'answer_too_large', /1000000/);
      });

      it('may not answer with anything but JSON', async () => {
        const agent = await agentThat((_, response) => {
          response.writeHead(200, { 'content-type': 'application/json' }).end('{"half":');
        });
        assertFailed(await call(agent, { protocol }), 'invalid_answer', /./);
      });
    });
  }

  describe('by http', () => {
    it('gets the capability, the payload, the caller, and the same key at every attempt', async () => {
      const agent = await agentThat(echo);
      const body = {
        invocationId: INVOCATION_ID,
        callerId: 'caller',
        capability: 'translate',
        payload: { text: 'otter', to: 'de' },
      };
      assert.deepEqual(await call(agent), { kind: 'answered', value: { echo: body } });
      assert.deepEqual([...agent.effects], [INVOCATION_ID]);
      assert.equal(agent.calls[0]?.method, 'POST');
    });

    it('may not answer with more than 100 levels', async () => {
      for (const levels of [100, 101, 100_000]) {
        const agent = await agentThat((_, response) => {
          response.writeHead(200, { 'content-type': 'application/json' });
          response.end('['.repeat(levels) + ']'.repeat(levels));
        });
        const answer = await call(agent);
        if (levels > 100) assertFailed(answer, 'invalid_answer', /100 levels/);
        else assert.equal(answer.kind, 'answered');
      }
    });

    it('may answer with any JSON value, or with nothing', async () => {
      for (const value of [null, 0, '', 'text', [1], { a: { b: 'c' } }, false]) {
        const agent = await agentThat((_, response) => sendJson(response, value));
        assert.deepEqual(await call(agent), { kind: 'answered', value });
      }
      const agent = await agentThat((_, response) => void response.writeHead(204).end());
      assert.deepEqual(await call(agent), { kind: 'answered', value: null });
    });
  });
});
