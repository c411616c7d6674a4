/** Events are posted to public addresses only; redirects are not followed, and every request ends. */
import assert from 'node:assert/strict';
import { webhookProblem } from '../../src/egress/endpoints.ts';
import { openPoster, type Posted } from '../../src/egress/post.ts';
import type { LookupAll } from '../../src/egress/resolve-names.ts';
import { startAgent, type Respond } from '../support/agents.ts';
import { until } from '../support/stack.ts';

const MESSAGE = { headers: { 'content-type': 'application/json' }, body: '{"a": 1}' };

const toLoopback: LookupAll = (_, __, done) => done(null, [{ address: '127.0.0.1', family: 4 }]);

describe('a guarded POST', () => {
  async function posting(
    respond: Respond,
    { allowPrivate = true, timeoutMs = 10_000, host = '127.0.0.1', resolve }: Options = {},
  ): Promise<{ posted: Posted; calls: number }> {
    const receiver = await startAgent(respond);
    const charactersMax = 10;
    const poster = openPoster({
      allowPrivate,
      timeoutMs,
      charactersMax,
      ...(resolve && { resolve }),
    });
    try {
      const { protocol } = allowPrivate ? { protocol: 'http' } : { protocol: 'https' };
      const posted = await poster.post(`${protocol}://${host}:${receiver.port}/`, MESSAGE);
      return { posted, calls: receiver.calls.length };
    } finally {
      await poster.close();
      await receiver.stop();
    }
  }
  interface Options {
    readonly allowPrivate?: boolean;
    readonly timeoutMs?: number;
    readonly host?: string;
    readonly resolve?: LookupAll;
  }

  it('returns the status and the beginning of the answer', async () => {
    const { posted } = await posting((call, response) => {
      assert.deepEqual(call.body, { a: 1 });
      response.writeHead(429, { 'retry-after': '7' }).end('0123\0\u{1F600}678901234');
    });
    assert.deepEqual(posted, {
      kind: 'answered',
      status: 429,
      beginning: '0123\u{FFFD}\u{1F600}678',
      retryAfterMs: 7_000,
    });
  });

  it('does not follow a redirect', async () => {
    const { posted, calls } = await posting(
      (_, response) => void response.writeHead(307, { location: '/elsewhere' }).end(),
    );
    assert.ok(posted.kind === 'answered' && posted.status === 307);
    assert.equal(calls, 1);
  });

  it('ends when there is no answer in time, and keeps the status of one whose body never ends', async () => {
    const silent = await posting(() => {}, { timeoutMs: 100 });
    assert.deepEqual(silent.posted, { kind: 'failed', reason: 'It did not answer in time.' });
    // Long enough for the beginning to arrive on a busy machine.
    const endless = await posting((_, response) => void response.writeHead(200).write('begun'), {
      timeoutMs: 1_500,
    });
    assert.ok(endless.posted.kind === 'answered');
    assert.deepEqual([endless.posted.status, endless.posted.beginning], [200, 'begun']);
  });

  it('does not wait until the deadline for the body of an answer', async () => {
    let answered: Posted | undefined;
    void posting((_, response) => void response.writeHead(200).write('begun'), {
      timeoutMs: 300_000, // longer than `until` waits
    }).then(({ posted }) => (answered = posted));
    const posted = await until(() => answered);
    assert.ok(posted.kind === 'answered');
    assert.deepEqual([posted.status, posted.beginning], [200, 'begun']);
  });

  it('reads no more of an answer than it keeps', async () => {
    const { posted } = await posting((_, response) => {
      response.writeHead(200);
      const more = () => response.writable && response.write('x'.repeat(65_536), more);
      response.on('error', () => {});
      more();
    });
    assert.ok(posted.kind === 'answered' && posted.beginning === 'x'.repeat(10));
  });

  it('is not made to private addresses, even when a name resolves to one', async () => {
    for (const host of ['127.0.0.1', 'localhost', '169.254.169.254', '[::1]', '2130706433']) {
      const { posted, calls } = await posting(() => {}, { allowPrivate: false, host });
      assert.deepEqual([posted.kind, calls], ['failed', 0], host);
    }
    const { posted, calls } = await posting(() => {}, {
      allowPrivate: false,
      host: 'rebound.example.com',
      resolve: toLoopback,
    });
    // Without the address: nobody may use us to ask the nameservers of this network.
    const reason = 'rebound.example.com is not at a public address.';
    assert.deepEqual(posted, { kind: 'failed', reason });
    assert.equal(calls, 0);
  });

  it('takes http only to loopback, and only in development', () => {
    const https = 'must be an https URL.';
    assert.equal(webhookProblem('https://example.com', { allowPrivate: false }), undefined);
    assert.equal(webhookProblem('http://example.com', { allowPrivate: false }), https);
    assert.equal(webhookProblem('http://example.com', { allowPrivate: true }), https);
    assert.equal(webhookProblem('http://10.0.0.1', { allowPrivate: true }), https);
    for (const host of ['localhost:3000', '127.0.0.1', '[::1]']) {
      assert.equal(webhookProblem(`http://${host}`, { allowPrivate: true }), undefined);
    }
  });
});
