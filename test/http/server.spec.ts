/** The HTTP server under a small app: what happens to a connection whose response has begun. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import Koa from 'koa';
import type { ResponseRecorder } from '../../src/http/response-recorder.ts';
import { KEEP_ALIVE_TIMEOUT_MS, listen, type ListeningServer } from '../../src/http/server.ts';
import { until } from '../support/stack.ts';

/** More than the buffers of two sockets take. */
const LARGE = Buffer.alloc(64 * 1024 * 1024, 'x');
const PIECES = Array.from({ length: 2_000 }, () => 'x'.repeat(50_000));
const LAST = 'GET /small HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

describe('a connection whose response has begun', () => {
  /** Closes a connection whose client stops reading for a second. */
  let hasty: ListeningServer;
  /** For clients that read all the time, in a process that is busy. Shorter than the time between two requests. */
  let patient: ListeningServer;
  /** Waits as long as that of an API process. */
  let usual: ListeningServer;
  let finish: () => void;
  /** The server's side of the last connection. */
  let served: Socket;

  before(async () => {
    const app = new Koa();
    app.use((ctx) => {
      ctx.respond = false;
      served = ctx.req.socket;
      if (ctx.path === '/large') ctx.res.end(LARGE);
      else if (ctx.path === '/small') ctx.res.end('small');
      else if (ctx.path === '/pieces') return pipeline(Readable.from(PIECES), ctx.res);
      else if (ctx.path === '/stream') ctx.res.write(LARGE);
      else ctx.res.writeHead(200).write('begun');
      finish = () => ctx.res.end(' and finished');
    });
    const options = { host: '127.0.0.1', port: 0, sharesPort: false, connectionsPerAddress: 0 };
    const responses = { unparsable: () => {} } as unknown as ResponseRecorder;
    const start = (waits: { unreadTimeoutMs?: number }) =>
      listen(app, { ...options, ...waits }, 'http://farebox.example', responses);
    hasty = await start({ unreadTimeoutMs: 1_000 });
    patient = await start({ unreadTimeoutMs: KEEP_ALIVE_TIMEOUT_MS - 5_000 });
    usual = await start({});
  });
  after(() => Promise.all([hasty.close(), patient.close(), usual.close()]));

  function ask(path: string, more = '', { port } = hasty): Socket {
    const socket: Socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n${more}`);
    return socket;
  }

  it('is closed behind the response if what follows is not HTTP', async () => {
    const socket = ask('/', '}');
    const [first] = (await once(socket, 'data')) as [Buffer];
    finish();
    const answer = String(first) + (await text(socket));
    socket.destroy();
    assert.match(answer, /^HTTP\/1\.1 200 .*begun.* and finished\r\n0\r\n\r\n$/s);
  });

  it('is closed when the client stops reading what a second request got, which it sent at once', async () => {
    const socket = ask('/small', 'GET /large HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(socket, 'readable');
    await once(served, 'close');
    socket.destroy();
  });

  it('keeps no listener for each time that a client was slower than the response', async () => {
    const warnings: Error[] = [];
    const warn = (warning: Error) => void warnings.push(warning);
    process.on('warning', warn);
    const socket = ask('/pieces', LAST, patient);
    assert.match(await text(socket), /small$/);
    process.off('warning', warn);
    assert.deepEqual(warnings, []);
  });

  for (const path of ['/large', '/stream']) {
    it(`is closed when the client stops reading ${path}`, async () => {
      const socket = ask(path);
      await once(socket, 'readable');
      await once(served, 'close');
      socket.destroy();
    });
  }

  it('has two minutes to read on, unless it is configured otherwise', async () => {
    const socket = ask('/large', LAST, usual);
    await once(socket, 'readable');
    await until(() => served.timeout === 120_000);
    assert.match(await text(socket), /small$/);
  });

  it('is kept for the next request when the client has read a large response', async () => {
    const socket = ask('/large', '', patient);
    let bytes = 0;
    socket.on('data', (chunk: Buffer) => (bytes += chunk.length));
    await until(() => bytes > LARGE.length && (served.timeout ?? 0) >= KEEP_ALIVE_TIMEOUT_MS);
    socket.destroy();
  });
});
