/** Requests that no route takes get an answer too: in the one shape of errors, and without any effect. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { ERRORS } from '../../src/domain/errors.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { assertError, assertErrorBody, call, charge, exchange } from '../support/http.ts';

describe('errors', () => {
  let api: TestApi;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(10);
  });
  after(() => api.stop());

  const paths = ['/v1', '/v1/nothing', '/v2/charges', '/v1/charges/a/b', '/favicon.ico'];
  for (const path of [...paths, '/__proto__', '/%00', '/%E0%A4%A', `/${'x'.repeat(5_000)}`]) {
    it(`answers not_found for ${path.slice(0, 30)}`, async () => {
      assertError(await call(api, 'GET', path), 404, 'not_found');
      assertError(await call(api, 'POST', path, { rawBody: '{' }), 404, 'not_found');
    });
  }

  for (const [method, path, allow] of [
    ['POST', '/v1/balance', 'HEAD, GET'],
    ['PUT', '/v1/charges', 'POST, HEAD, GET'],
    ['DELETE', '/v1/charges', 'POST, HEAD, GET'],
    ['PATCH', '/v1/tools', 'POST, HEAD, GET'],
    ['OPTIONS', '/v1/earnings', 'HEAD, GET'],
    ['GET', '/v1/checkout', 'POST'],
    ['GET', '/v1/charges/batch', 'POST'],
    ['GET', '/v1/charges/batch?x', 'POST'],
    ['POST', '/v1/charges/chg_1', 'HEAD, GET'],
    ['POST', '/', 'HEAD, GET'],
    ['PUT', '/console', 'HEAD, GET'],
    ['DELETE', '/console/charges', 'HEAD, GET'],
    ['PUT', '/console/auth/sign-in/email', 'POST'],
    ['DELETE', '/console/auth/sign-out', 'POST'],
    ['PUT', '/console/auth/sign-in-link?token=x', 'HEAD, GET, POST'],
  ] as const) {
    it(`answers method_not_allowed for ${method} ${path}`, async () => {
      const answer = await call(api, method, path);
      assertError(answer, 405, 'method_not_allowed');
      assert.deepEqual(
        answer.headers.get('allow')?.split(', ').toSorted(),
        allow.split(', ').toSorted(),
      );
    });
  }

  it('answers method_not_allowed for TRACE, which fetch does not send', async () => {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
    socket.write('TRACE /console/auth/sign-out HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    assert.match(await text(socket), /^HTTP\/1\.1 405 /);
  });

  it('answers HEAD with the headers alone', async () => {
    const answer = await call(api, 'HEAD', '/v1/balance', { key: account.consumerKey });
    assert.deepEqual([answer.status, answer.body], [200, '']);
  });

  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/jsonp',
    '*/*',
  ]) {
    it(`answers unsupported_media_type for a body of ${type}`, async () => {
      const answer = await api.changingNothing(() =>
        charge(api, account, {}, { 'content-type': type }),
      );
      assertError(answer, 415, 'unsupported_media_type');
    });
  }

  it('answers unsupported_media_type for a body without a type', async () => {
    const key = account.developerKey;
    const rawBody = new TextEncoder().encode('{}');
    const answer = await call(api, 'POST', '/v1/charges', {
      key,
      rawBody,
      headers: { 'content-type': '' },
    });
    assertError(answer, 415, 'unsupported_media_type');
  });

  for (const encoding of ['gzip', 'br', 'deflate', 'zstd', 'nonsense']) {
    it(`answers unsupported_media_type for a body in ${encoding}`, async () => {
      const rawBody = new Uint8Array(gzipSync('{}'));
      const answer = await api.changingNothing(() =>
        call(api, 'POST', '/v1/charges', {
          key: account.developerKey,
          rawBody,
          headers: { 'content-encoding': encoding },
        }),
      );
      assertError(answer, 415, 'unsupported_media_type');
    });
  }

  it('takes a body that says in any letters that it has no encoding', async () => {
    for (const encoding of ['identity', 'Identity']) {
      const made = await charge(api, account, {}, { 'content-encoding': encoding });
      assert.equal(made.status, 201);
    }
  });

  for (const kilobytes of [65, 1_024]) {
    it(`answers payload_too_large for ${kilobytes} kB, and closes the connection`, async () => {
      const answer = await api.changingNothing(() =>
        charge(api, account, { extra: 'x'.repeat(kilobytes * 1_024) }),
      );
      assertError(answer, 413, 'payload_too_large');
      assert.equal(answer.headers.get('connection'), 'close');
    });
  }

  async function answerToEndlessBody(path: string): Promise<string> {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
    socket.on('error', () => {});
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: farebox\r\nContent-Type: application/json\r\n` +
        `Authorization: Bearer ${account.developerKey}\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`;
    const sender = setInterval(() => socket.write(chunk), 1);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    clearInterval(sender);
    socket.destroy();
    return answer.toString();
  }

  it('answers payload_too_large before an endless body has ended', async () => {
    const answer = await answerToEndlessBody('/v1/charges');
    assert.match(answer, /^HTTP\/1\.1 413 [^]*"code":"payload_too_large"/);
  });

  it('answers payload_too_large to an endless body of somebody who signs in', async () => {
    const answer = await answerToEndlessBody('/console/auth/sign-in/email');
    assert.match(answer, /^HTTP\/1\.1 413 [^]*"code":"payload_too_large"/);
  });

  const malformed: Readonly<Record<string, string>> = {
    'is no HTTP': 'hello\r\n\r\n',
    'has an unknown method': 'CHARGE / HTTP/1.1\r\nHost: farebox\r\n\r\n',
    'has a NUL in a header': 'GET / HTTP/1.1\r\nHost: farebox\r\nX: a\0b\r\n\r\n',
    'has two lengths':
      'POST /v1/charges HTTP/1.1\r\nHost: f\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}',
    'has a length and chunks':
      'POST / HTTP/1.1\r\nHost: f\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'has 100 kB of headers': `GET / HTTP/1.1\r\nHost: f\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`,
    'has a chunk of no length':
      'POST / HTTP/1.1\r\nHost: f\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n',
  };
  for (const [what, bytes] of Object.entries(malformed)) {
    it(`answers invalid_request to a request that ${what}, and closes the connection`, async () => {
      const answer = await exchange(api, bytes);
      const [head, body] = answer.slice(answer.lastIndexOf('HTTP/1.1 ')).split('\r\n\r\n');
      assert.match(head ?? '', /^HTTP\/1\.1 400 [^]*\r\nConnection: close/);
      const requestId = /X-Request-Id: (req_[0-9a-f]{32})/.exec(head ?? '')?.[1];
      assertErrorBody(JSON.parse(body ?? ''), requestId ?? '', 'invalid_request');
    });
  }

  it('makes no charge from an incomplete body', async () => {
    await api.changingNothing(async () => {
      const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
      socket.write(
        'POST /v1/charges HTTP/1.1\r\nHost: farebox\r\nContent-Type: application/json\r\n' +
          `Authorization: Bearer ${account.developerKey}\r\nContent-Length: 1000\r\n\r\n{"apiKey":`,
      );
      const answer = text(socket);
      socket.end();
      await answer;
      assert.equal((await call(api, 'GET', '/healthz')).status, 200);
    });
  });

  it('explains every code on the page that errors point to', async () => {
    const answer = await call(api, 'GET', '/docs/errors');
    assert.equal(answer.headers.get('content-type'), 'text/html; charset=utf-8');
    for (const code of Object.keys(ERRORS)) {
      assert.ok(String(answer.body).includes(`id="${code}"`), code);
    }
  });

  it('has a page for each code, with its effect and the endpoints that return it', async () => {
    const unknown: string[] = [];
    for (const [code, [status]] of Object.entries(ERRORS)) {
      const { status: answered, body } = await call(api, 'GET', `/docs/errors/${code}`);
      assert.equal(answered, 200, code);
      assert.match(String(body), new RegExp(`<h1><code>${code}</code></h1>.*<dd>${status}</dd>`));
      if (/Unknown\. Repeat the request with the same/.test(String(body))) unknown.push(code);
    }
    const page = await call(api, 'GET', '/docs/errors/exceeds_hold');
    assert.match(String(page.body), /No money moved.*POST \/v1\/holds\/:id\/capture/);
    const declined = await call(api, 'GET', '/docs/errors/card_declined');
    assert.match(String(declined.body), /Nothing was paid.*to pay again, send a new one/);
    // Every other 409 is a refusal.
    const expected = ['idempotency_key_in_use', 'internal_error', 'outcome_unknown'];
    assert.deepEqual(unknown.toSorted(), expected);
    assertError(await call(api, 'GET', '/docs/errors/toString'), 404, 'not_found');
  });
});
