/** Outgoing calls on behalf of others: private addresses are not reached, and every call ends. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { gzipSync } from 'node:zlib';
import { createConnector, EgressDeniedError } from '../../src/egress/connector.ts';
import { FetchFault, openGuardedFetch, type GuardedFetch } from '../../src/egress/guarded-fetch.ts';
import type { LookupAll } from '../../src/egress/resolve-names.ts';
import { sendJson, startAgent, type Respond } from '../support/agents.ts';
import { until } from '../support/stack.ts';

/** The machine itself, its network, or a cloud's metadata service, in every known spelling. */
const SPELLINGS = ['127.0.0.1', 'localhost', '127.1', '2130706433', '0x7f000001'].concat(
  ['0177.0.0.1', '0.0.0.0', '0', '127.0.0.1.', 'localhost.', '①②⑦.⓪.⓪.①', '127。0。0。1'],
  ['[::1]', '[::]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::127.0.0.1]'],
  ['[64:ff9b::7f00:1]', '[2002:7f00:1::]', '[0:0:0:0:0:ffff:7f00:0001]', '[fd00:ec2::254]'],
  ['168.63.129.16', '169.254.169.254', '100.100.100.200'],
);
const BYTES_MAX = 1_000;

async function faultOf(work: Promise<unknown>): Promise<FetchFault> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof FetchFault, String(error));
  return error;
}

const isDenied = (error: unknown) => error instanceof EgressDeniedError;
const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code;

describe('a guarded fetch', () => {
  const opened: GuardedFetch[] = [];
  const open = (allowPrivate = true, timeoutMs = 10_000): GuardedFetch => {
    const signal = AbortSignal.timeout(timeoutMs);
    const guarded = openGuardedFetch({ allowPrivate, bytesMax: BYTES_MAX, signal });
    opened.push(guarded);
    return guarded;
  };
  afterEach(() => Promise.all(opened.splice(0).map((guarded) => guarded.close())));

  /** The result of one call to an agent that answers like this. */
  async function calling(
    respond: Respond,
    read: (guarded: GuardedFetch, url: string) => Promise<unknown>,
  ) {
    const agent = await startAgent(respond);
    try {
      return await read(open(), agent.url);
    } finally {
      await agent.stop();
    }
  }

  describe('to public addresses only', () => {
    let listener: Server;
    let port: number;
    let connections = 0;

    before(async () => {
      listener = createServer(() => (connections += 1)).listen(0, '::');
      await once(listener, 'listening');
      port = (listener.address() as { port: number }).port;
    });
    after(() => listener.close());

    for (const host of SPELLINGS) {
      it(`does not reach ${host}`, async () => {
        const guarded = open(false);
        const fault = await faultOf(guarded.fetch(`http://${host}:${port}/`));
        assert.equal(fault.kind, 'denied');
        assert.equal(guarded.fault, fault);
        assert.equal(connections, 0);
      });

      it(`is not connected to ${host} by a caller that skips the text check`, async () => {
        const error = await connecting(new URL(`http://${host}`).hostname);
        // Not every system recognizes a name with a dot at its end.
        assert.ok(
          isDenied(error) || (host.startsWith('localhost') && codeOf(error) === 'ENOTFOUND'),
        );
      });
    }

    it('is not connected to a name with a private address beside a public one', async () => {
      const error = await connecting('two.example.com', (_, __, done) => {
        const addresses = ['1.1.1.1', '127.0.0.1'];
        done(
          null,
          addresses.map((address) => ({ address, family: 4 })),
        );
      });
      assert.ok(isDenied(error));
    });

    it('is not connected to a name that turns private after the check', async () => {
      let looks = 0;
      const turning: LookupAll = (_, __, done) => {
        looks += 1;
        done(null, [{ address: looks === 1 ? '1.1.1.1' : '127.0.0.1', family: 4 }]);
      };
      turning('turns.example.com', { all: true }, () => {});
      assert.ok(isDenied(await connecting('turns.example.com', turning)));
    });

    /** Returns the error; fails when a connection was made. */
    async function connecting(hostname: string, resolve?: LookupAll): Promise<unknown> {
      const connect = createConnector({ allowPrivate: false, ...(resolve && { resolve }) });
      const target = { hostname, protocol: 'http:', port: String(port) };
      const error = await new Promise((done) => {
        connect(target, (...[error]) => done(error));
      });
      assert.equal(connections, 0);
      return error;
    }

    for (const url of [
      'file:///etc/passwd',
      'ftp://example.com/',
      'data:text/plain,x',
      'gopher://a',
    ]) {
      it(`does not fetch ${url}`, async () => {
        assert.equal((await faultOf(open(false).fetch(url))).kind, 'denied');
      });
    }
  });

  for (const status of [301, 302, 303, 307, 308]) {
    it(`follows no redirect of ${status}`, async () => {
      const target = await startAgent();
      const fault = await calling(
        (_, response) => void response.writeHead(status, { location: target.url }).end(),
        (guarded, url) => faultOf(guarded.fetch(url, { method: 'POST', body: '{}' })),
      );
      assert.equal((fault as FetchFault).kind, 'redirected');
      assert.deepEqual(target.calls, []);
      await target.stop();
    });
  }

  it('returns an answer within the limit, with its status and headers', async () => {
    const body = 'x'.repeat(BYTES_MAX - 2);
    await calling(
      (_, response) => sendJson(response, body, 404),
      async (guarded, url) => {
        const response = await guarded.fetch(url);
        assert.equal(response.status, 404);
        assert.equal(response.headers.get('content-type'), 'application/json');
        assert.equal(await response.json(), body);
        assert.equal(guarded.status, 404);
        assert.equal(guarded.fault, undefined);
      },
    );
  });

  it('stops reading an answer that is too large, even if it never ends', async () => {
    const cut = new AbortController();
    const fault = await calling(
      async (_, response) => {
        response.on('close', () => cut.abort());
        while (!cut.signal.aborted) {
          if (!response.write('x'.repeat(500))) await once(response, 'drain').catch(() => {});
          await new Promise((resolve) => setImmediate(resolve));
        }
      },
      async (guarded, url) => {
        const response = await guarded.fetch(url);
        const found = await faultOf(response.text());
        await until(() => cut.signal.aborted);
        return found;
      },
    );
    assert.equal((fault as FetchFault).kind, 'too_large');
  });

  it('counts a compressed answer by its uncompressed size', async () => {
    const bomb = gzipSync('x'.repeat(10_000_000));
    const fault = await calling(
      (_, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
      async (guarded, url) => faultOf((await guarded.fetch(url)).text()),
    );
    assert.equal((fault as FetchFault).kind, 'too_large');
  });

  for (const status of [408, 425, 429, 500, 502, 503, 504]) {
    it(`treats ${status} as a reason to retry later`, async () => {
      const fault = (await calling(
        (_, response) => void response.writeHead(status, { 'retry-after': '7' }).end('busy'),
        (guarded, url) => faultOf(guarded.fetch(url)),
      )) as FetchFault;
      assert.equal(fault.kind, 'unavailable');
      assert.equal(fault.retryAfterMs, 7_000);
    });
  }

  it('opens few connections at once, for any number of calls', async () => {
    let connections = 0;
    const listener = createServer(() => (connections += 1)).listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const { port } = listener.address() as { port: number };
    const guarded = open(true, 2_000);
    const calls = Array.from({ length: 50 }, () => guarded.fetch(`http://127.0.0.1:${port}`));
    await Promise.all(calls.map(faultOf));
    await guarded.close();
    listener.close();
    assert.equal(connections, 10);
  });

  it('does not wait past its deadline for an answer', async () => {
    const agent = await startAgent(() => {});
    const fault = await faultOf(open(true, 200).fetch(agent.url));
    assert.deepEqual([fault.kind, fault.message], ['unavailable', 'It did not answer in time.']);
    await agent.stop();
  });

  it('does not wait past its deadline for the rest of an answer', async () => {
    const agent = await startAgent((_, response) => void response.write('the beginning'));
    const response = await open(true, 1_500).fetch(agent.url);
    const fault = await faultOf(response.text());
    assert.deepEqual([fault.kind, fault.message], ['unavailable', 'It did not answer in time.']);
    await agent.stop();
  });

  it('says why the connection failed, without the address', async () => {
    const agent = await startAgent();
    await agent.stop();
    const fault = await faultOf(open().fetch(agent.url));
    assert.deepEqual(
      [fault.kind, fault.message],
      ['unavailable', 'The connection failed: ECONNREFUSED.'],
    );
  });

  it('treats a truncated answer as none', async () => {
    const fault = await calling(
      (_, response) => {
        response.writeHead(200, { 'content-length': '100' });
        response.write('a part', () => response.destroy());
      },
      async (guarded, url) => faultOf(guarded.fetch(url).then((response) => response.text())),
    );
    assert.equal((fault as FetchFault).kind, 'unavailable');
  });
});
