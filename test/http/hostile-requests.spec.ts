/** Requests from strangers without a key: answered with a 400 and little work, or cut off in time. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { startTestApi, type TestApi } from '../support/api.ts';
import { assertError, call } from '../support/http.ts';
import { until } from '../support/stack.ts';

const SIGNATURE = 'f'.repeat(64);

describe('a request from a stranger', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  /** Everything received on a separate connection until it closes. */
  async function raw(sent: string): Promise<string> {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
    socket.on('error', () => {});
    socket.write(sent);
    return text(socket);
  }

  for (const target of ['http://[::1/x', `http://[${'a'.repeat(10_000)}`, 'x', '*']) {
    it(`for ${target.slice(0, 20)} is answered 400, not 500`, async () => {
      const answer = await raw(`GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`);
      assert.match(answer, /^HTTP\/1\.1 400 .*"code":"invalid_request"/s);
    });
  }

  for (const [what, head] of Object.entries({
    'without a host': 'GET /healthz HTTP/1.1',
    'to open a tunnel': 'CONNECT a:443 HTTP/1.1\r\nHost: a',
    'that expects what nobody offers': 'POST /v1/charges HTTP/1.1\r\nHost: a\r\nExpect: a-receipt',
  })) {
    it(`${what} is answered 400 with an error of the one shape`, async () => {
      const answer = await raw(`${head}\r\n\r\n`);
      assert.match(answer, /^HTTP\/1\.1 400 .*"code":"invalid_request"/s);
    });
  }

  for (const [what, bytes] of Object.entries({
    'without a host': 'GET /healthz HTTP/1.1\r\n\r\n',
    'that is not HTTP': '}',
    'to open a tunnel': 'CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n',
  })) {
    it(`${what}, behind a charge on its connection, is not answered before the charge`, async () => {
      const account = await api.createAccount(1);
      const { consumerKey: apiKey, developerKey } = account;
      const body = JSON.stringify({ apiKey, tool: 'search', amount: 0.25 });
      const answer = await raw(
        `POST /v1/charges HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${developerKey}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}${bytes}`,
      );
      assert.match(answer, /^HTTP\/1\.1 201 .*"balance":0\.75/s);
    });
  }

  it('to open a tunnel, whose sender is gone before its answers, does not end the process', async () => {
    for (let n = 0; n < 300; n += 1) {
      const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
      socket.on('error', () => {});
      const bytes =
        'GET /readyz HTTP/1.1\r\nHost: a\r\n\r\nCONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n';
      socket.write(bytes, () => socket.resetAndDestroy());
      await once(socket, 'close');
    }
    assert.equal((await fetch(`${api.url}/healthz`)).status, 200);
  });

  it('that names the whole URL is answered like one that names the path', async () => {
    const answer = await raw(
      'GET http://any.example/healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    );
    assert.match(answer, /^HTTP\/1\.1 200 /);
  });

  for (const [what, signatureOf] of Object.entries({
    'has no signature': (): string | undefined => undefined,
    'is signed with bytes beyond ASCII': () => `t=${now()},v1=${'\u00ff'.repeat(64)}`,
    'is signed at no time': () => `t=,v1=${SIGNATURE}`,
    'is signed with nothing': () => `t=${now()},v1=`,
    'was signed an hour ago': () => `t=${now() - 3_600},v1=${SIGNATURE}`,
  })) {
    it(`to the webhook that ${what} is refused before its body arrives`, async () => {
      const signature = signatureOf();
      const header = signature === undefined ? '' : `Stripe-Signature: ${signature}\r\n`;
      const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
      socket.write(
        Buffer.from(
          `POST /webhooks/stripe HTTP/1.1\r\nHost: a\r\n${header}Content-Length: 500000\r\n\r\n{`,
          'latin1',
        ),
      );
      const [answer] = (await new Promise((resolve) =>
        socket.once('data', (data) => resolve([data])),
      )) as [Buffer];
      socket.destroy();
      assert.match(String(answer), /^HTTP\/1\.1 400 /);
    });
  }

  it('to the webhook with a well-formed signature is refused as an invalid one', async () => {
    const answer = await call(api, 'POST', '/webhooks/stripe', {
      headers: { 'stripe-signature': `t=${now()},v1=${SIGNATURE}` },
      body: {},
    });
    assertError(answer, 400, 'invalid_signature');
  });

  it('whose headers never end is cut off after 10 seconds, not after 40', async () => {
    // Again if the machine stood still meanwhile.
    await until(async () => {
      const startedAtMs = Date.now();
      const answer = await raw('GET /healthz HTTP/1.1\r\nHost: a\r\nX-Slow: ');
      const tookMs = Date.now() - startedAtMs;
      assert.match(answer, /^(HTTP\/1\.1 4\d\d |$)/);
      assert.ok(tookMs >= 9_000, `${tookMs} ms`);
      return tookMs < 35_000;
    });
  });

  it('leaves the port to a running process: a second one on it exits', async () => {
    const cli = join(import.meta.dirname, '../../src/cli.ts');
    const env = { ...api.env, PORT: new URL(api.url).port, PATH: process.env['PATH'] };
    const second = spawn(process.execPath, [cli, 'api'], { env, stdio: 'ignore' });
    assert.equal(await new Promise((resolve) => second.once('exit', resolve)), 1);
  });
});

function now(): number {
  return Math.floor(Date.now() / 1_000);
}
