/** One request by each of the two transports, which must behave the same. */
import assert from 'node:assert/strict';
import { Farebox } from '@farebox/client';
import clientPackage from '../../client/package.json' with { type: 'json' };
import { until } from '../support/stack.ts';
import { answer, droppedLine, ScriptedService, silence, type Step } from './scripted-service.ts';

const halfAnAnswer: Step = (response) => {
  response.writeHead(200, { 'content-length': '100' });
  response.write('half', () => response.destroy());
};

const switchedProtocol: Step = ({ socket }) => {
  socket?.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n');
};

const aPost = {
  method: 'POST',
  headers: { 'X-Of-Ours': 'yes' },
  body: '{"é":1}',
  timeoutMs: 5_000,
};

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly header: (name: string) => string | undefined;
}

type Send = (url: string, request: typeof aPost) => Promise<Answer>;

for (const name of ['send-fetch.js', 'send-node.js']) {
  describe(`client: ${name}`, () => {
    let send: Send;
    before(async () => {
      ({ send } = (await import(`../../client/${name}`)) as { send: Send });
    });

    it('sends a body with our headers, and receives the answer', async () => {
      await using service = await ScriptedService.start(answer(201, 'größer', { 'x-said': 'a' }));
      const { status, header, text } = await send(`${service.url}/path?q=1`, aPost);
      assert.deepEqual(
        { status, text, said: header('x-said'), missing: header('x-other') },
        { status: 201, text: 'größer', said: 'a', missing: undefined },
      );
      const [{ method, path, headers, body } = assert.fail('nothing came')] = service.seen;
      assert.deepEqual(
        { method, path, body, ours: headers['x-of-ours'], length: headers['content-length'] },
        { method: 'POST', path: '/path?q=1', body: { é: 1 }, ours: 'yes', length: '8' },
      );
    });

    it('reassembles an answer of several packets', async () => {
      const long = 'é'.repeat(1_000_000);
      await using service = await ScriptedService.start(answer(200, long));
      const { text } = await send(service.url, aPost);
      assert.equal(text, long);
    });

    it('reports that nothing listens', async () => {
      const service = await ScriptedService.start(silence);
      await service.close();
      await assert.rejects(send(service.url, aPost), (error: Error) => {
        const { code } = (error.cause ?? error) as NodeJS.ErrnoException;
        return code === 'ECONNREFUSED';
      });
    });

    it('waits for an answer up to the timeout, and reports it', async () => {
      await using service = await ScriptedService.start(silence);
      await assert.rejects(send(service.url, { ...aPost, timeoutMs: 50 }), {
        name: 'TimeoutError',
      });
    });

    it('waits no longer for the rest of an answer', async () => {
      await using service = await ScriptedService.start((response) => {
        response.writeHead(200, { 'content-length': '100' });
        response.write('half');
      });
      await assert.rejects(send(service.url, { ...aPost, timeoutMs: 200 }), {
        name: 'TimeoutError',
      });
    });

    it('takes neither half an answer nor an empty one for a whole one', async () => {
      await using service = await ScriptedService.start(halfAnAnswer, droppedLine);
      await assert.rejects(send(service.url, aPost), Error);
      await assert.rejects(send(service.url, aPost), Error);
    });

    it('takes a switch of protocols for a lost answer', async () => {
      await using service = await ScriptedService.start(switchedProtocol);
      await assert.rejects(send(service.url, aPost), Error);
    });

    it('does not follow a redirect', async () => {
      await using service = await ScriptedService.start(answer(307, '', { location: '/other' }));
      assert.equal((await send(service.url, aPost)).status, 307);
      assert.equal(service.seen.length, 1);
    });

    it('reuses connections for the next requests', async () => {
      const ports: (number | undefined)[] = [];
      await using service = await ScriptedService.start((response, request) => {
        ports.push(response.socket?.remotePort);
        answer(200, 'yes')(response, request);
      });
      for (let n = 0; n < 6; n += 1) await send(service.url, aPost);
      assert.ok(new Set(ports).size < ports.length, String(ports));
    });
  });
}

describe('client: the option fetch', () => {
  it('leaves nothing of a call behind on the signal of its caller, which may end others later', async () => {
    const given: AbortSignal[] = [];
    const fetch = async (_url: string, { signal }: RequestInit) => {
      assert.ok(signal);
      given.push(signal);
      return Response.json({ id: 'hld_1' }, { status: 201 });
    };
    const settings = { secretKey: 'fare_sk_live_x', baseUrl: 'http://farebox.test', fetch };
    const caller = new AbortController();
    const hold = { apiKey: 'fare_ck_live_x', tool: 'search', amount: 1 };
    await new Farebox(settings).holds.place(hold, { signal: caller.signal });
    caller.abort();
    assert.deepEqual([given.length, given[0]?.aborted], [1, false]);
  });

  it('sends nothing for a caller that had given up before, and ends the request of one that gives up', async () => {
    const sent: AbortSignal[] = [];
    const fetch = async (_url: string, { signal }: RequestInit) => {
      assert.ok(signal);
      sent.push(signal);
      const { promise, reject } = Promise.withResolvers<Response>();
      signal.addEventListener('abort', () => reject(signal.reason));
      return promise;
    };
    const settings = { secretKey: 'fare_sk_live_x', baseUrl: 'http://farebox.test', fetch };
    const farebox = new Farebox(settings);
    const hold = { apiKey: 'fare_ck_live_x', tool: 'search', amount: 1 };
    const isAborted = { code: 'aborted' };
    await assert.rejects(farebox.holds.place(hold, { signal: AbortSignal.abort() }), isAborted);
    assert.equal(sent.length, 0);
    const caller = new AbortController();
    const placing = farebox.holds.place(hold, { signal: caller.signal });
    const [given] = await until(() => sent.length > 0 && sent);
    caller.abort();
    await assert.rejects(placing, isAborted);
    assert.equal(given?.aborted, true);
  });
});

describe('client: the User-Agent', () => {
  const expected = `farebox-client/${clientPackage.version}`;
  const settings = { secretKey: 'fare_sk_live_x' };

  for (const [how, options] of Object.entries({
    'of Node': {},
    'of the settings': { fetch: (url: string, init: RequestInit) => fetch(url, init) },
  })) {
    it(`has the version of the package, sent by the fetch ${how}`, async () => {
      await using service = await ScriptedService.start(answer(200, {}));
      await new Farebox({ ...settings, ...options, baseUrl: service.url }).earnings();
      assert.equal(service.seen[0]?.headers['user-agent'], expected);
    });
  }

  it('is left to the browser in a browser', async () => {
    const usual = Object.getOwnPropertyDescriptor(globalThis, 'navigator') ?? {};
    const userAgent = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
    Object.defineProperty(globalThis, 'navigator', { value: { userAgent }, configurable: true });
    try {
      const file = '../../client/user-agent.js?browser';
      const { USER_AGENT: header } = (await import(file)) as { USER_AGENT: object };
      assert.deepEqual(header, {});
    } finally {
      Object.defineProperty(globalThis, 'navigator', usual);
    }
  });
});
