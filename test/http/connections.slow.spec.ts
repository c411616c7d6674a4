/** Clients that hold connections: slow ones, idle ones, and more than a process takes. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import {
  CONNECTIONS_MAX,
  KEEP_ALIVE_TIMEOUT_MS,
  REQUEST_TIMEOUT_MS,
} from '../../src/http/server.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApiProcesses, type TestApi } from '../support/api.ts';
import { until, type ServerProcess } from '../support/stack.ts';

const run = promisify(execFile);
const HEALTH = 'GET /healthz HTTP/1.1\r\nHost: farebox\r\n';
/** Beyond what the process needs for itself, which is about 60. */
const FILES = 160;

describe('connections', () => {
  let api: TestApi<ServerProcess>;
  let account: TestAccount;
  const open = new Set<Socket>();

  before(async () => {
    api = await startTestApiProcesses();
    account = await api.createAccount(10);
  });
  afterEach(() => {
    for (const socket of open) socket.destroy();
  });
  after(() => api?.stop());

  function newConnection({ allowHalfOpen = false } = {}): Socket {
    const port = Number(new URL(api.url).port);
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen });
    open.add(socket);
    socket.on('error', () => {}).on('close', () => open.delete(socket));
    return socket;
  }

  /** Sends one request on a new connection. */
  async function isAnswered(): Promise<boolean> {
    const socket = newConnection();
    socket.write(`${HEALTH}Connection: close\r\n\r\n`);
    return (await text(socket).catch(() => '')).startsWith('HTTP/1.1 200');
  }

  const charging = () =>
    JSON.stringify({ apiKey: account.consumerKey, tool: 'search', amount: 0.01 });

  /** The head of a charge, whose body follows in the same connection. */
  const chargeHead = (length: number) =>
    `POST /v1/charges HTTP/1.1\r\nHost: farebox\r\nAuthorization: Bearer ${account.developerKey}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;

  /** The status of a charge on this connection, which stays open. */
  async function chargeOn(socket: Socket): Promise<string> {
    const body = charging();
    socket.write(chargeHead(body.length) + body);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    return String(answer).slice(9, 12);
  }

  it('whose request takes longer than 15 seconds are closed, and nothing is charged', async () => {
    await api.changingNothing(async () => {
      const sinceMs = performance.now();
      const socket = newConnection({ allowHalfOpen: true });
      const body = charging();
      socket.write(chargeHead(body.length) + body.slice(0, -1));
      const answer = await textUntilClosed(socket, body.slice(-1));
      const tookMs = performance.now() - sinceMs;
      assert.match(answer, /^HTTP\/1\.1 400 .*"code":"invalid_request"/s);
      assert.ok(tookMs >= REQUEST_TIMEOUT_MS - 1_000, `after ${tookMs} ms`);
    });
  });

  for (const [what, bytes] of Object.entries({
    'send nothing': '',
    'send half of a head': HEALTH,
    'send what is not HTTP': '}',
    'ask for a tunnel': 'CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n',
  })) {
    it(`that ${what} are closed, though the client keeps its side open`, async () => {
      const socket = newConnection({ allowHalfOpen: true });
      socket.write(bytes);
      const answer = await textUntilClosed(socket, 'a');
      assert.match(answer, /^HTTP\/1\.1 400 .*"code":"invalid_request"/s);
    });
  }

  it('that are idle for 65 seconds are closed, and those in use are not', async () => {
    const idle = newConnection();
    const used = newConnection();
    assert.equal(await chargeOn(idle), '201');
    const sinceMs = performance.now();
    const ended = once(idle, 'close');
    let isIdleOpen = true;
    void ended.then(() => (isIdleOpen = false));
    await until(async () => (await chargeOn(used)) === '201' && !isIdleOpen, {
      timeoutMs: 2 * KEEP_ALIVE_TIMEOUT_MS,
      intervalMs: 1_000,
    });
    assert.ok(performance.now() - sinceMs >= KEEP_ALIVE_TIMEOUT_MS - 1_000);
    assert.equal(await chargeOn(used), '201');
  });

  it('beyond 10,000 of a process are closed unanswered, while the others are served', async () => {
    const first = newConnection();
    assert.equal(await chargeOn(first), '201');
    while (open.size < CONNECTIONS_MAX) {
      const some = Array.from({ length: Math.min(200, CONNECTIONS_MAX - open.size) }, () =>
        keepOpen(newConnection()),
      );
      await Promise.all(some);
    }
    await until(async () => !(await isAnswered()));
    assert.equal(await chargeOn(first), '201');
    for (const socket of open) if (socket !== first) socket.destroy();
    await until(isAnswered);
  });

  it('beyond the file descriptors of a process are closed unanswered, while the others are served', async () => {
    const first = newConnection();
    assert.equal(await chargeOn(first), '201');
    const limit = (files: number) =>
      run('prlimit', ['--pid', String(api.pid), `--nofile=${files}:`]);
    const { stdout } = await run('prlimit', [
      '--pid',
      String(api.pid),
      '--nofile',
      '--raw',
      '-o',
      'SOFT',
      '--noheadings',
    ]);
    await limit(FILES);
    try {
      for (let round = 0; round < 3; round += 1) {
        for (let n = 0; n < FILES; n += 1) newConnection();
        await until(async () => !(await isAnswered()));
        for (let n = 0; n < 20; n += 1) assert.equal(await chargeOn(first), '201');
      }
      for (const socket of open) if (socket !== first) socket.destroy();
      await until(isAnswered);
    } finally {
      await limit(Number(stdout));
    }
  });
});

/** Everything received until the server ends its side. Then writes until it is known to have closed the connection. */
async function textUntilClosed(socket: Socket, further: string): Promise<string> {
  const answer = await text(socket);
  await until(() => {
    socket.write(further);
    return socket.destroyed;
  });
  return answer;
}

/** After its first request, a connection may be idle for longer than before. */
async function keepOpen(socket: Socket): Promise<void> {
  socket.write(`${HEALTH}\r\n`);
  await Promise.race([once(socket, 'data'), once(socket, 'close')]);
}
