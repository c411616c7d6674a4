/**
 * `npm run test:python`: follows docs/python.md through a proxy that loses the responses to charges that were made: it
 * sends its own, in JSON or not, or none. Then calls the page's tool with a budget that is too small, and with a wrong
 * secret key. Needs Python 3.10 or newer with venv; pip installs what the page says.
 */
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAccount } from '../support/accounts.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { startStack } from '../support/stack.ts';
import { followPage } from './page-run.ts';

await mochaGlobalSetup();
const folder = await mkdtemp(join(tmpdir(), 'farebox-python-'));
try {
  const stack = await startStack();
  try {
    const account = await createAccount(stack.env, 10);
    const proxy = await startProxy(stack.api.url);
    await followPage('docs/python.md', folder, {
      url: proxy.url,
      account,
      env: stack.env,
      after: async (shell) => {
        await shell("sed 's/limit=5/limit=0.01/' spend_key.py > small_key.py");
        const tooDear = await shell('python call_tool.py $(python small_key.py)');
        assert.match(tooDear, /^refused: .*\/console\/approvals\?budget=/);
        proxy.secretKey = `${account.developerKey}x`;
        const unbilled = await shell('python call_tool.py $FAREBOX_SPEND_KEY');
        assert.match(unbilled, /^refused: .*This call cannot be billed/);
        assert.doesNotMatch(unbilled, /secret key|http/);
        assert.match(await shell('cat paid_tool.log'), /invalid_secret_key/);
      },
    });
    process.stdout.write('docs/python.md does what it says.\n');
  } finally {
    await stack.stop();
  }
} finally {
  await rm(folder, { recursive: true, force: true });
  await mochaGlobalTeardown();
}

interface Proxy {
  readonly url: string;
  /** Sent with charges in place of the tool's own. */
  secretKey: string | undefined;
}

/** Ends with this process. */
async function startProxy(target: string): Promise<Proxy> {
  /** Replaces the response to each charge; undefined sends the response unchanged. */
  const fates: (((response: ServerResponse) => unknown) | undefined)[] = [
    // The first call of the page.
    (response) => sendJson(response, 500, '{"message":"Internal server error"}'),
    (response) => response.destroy(),
    undefined,
    // The second call.
    (response) => response.writeHead(502).end('<h1>Bad Gateway</h1>'),
    (response) => sendJson(response, 503, 'null'),
    undefined,
  ];
  const pass = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = 'GET', url = '', headers } = request;
    const isCharge = url === '/v1/charges';
    const body = await buffer(request);
    const { host: _, connection: __, 'content-length': ___, ...passed } = headers;
    if (isCharge && proxy.secretKey) passed.authorization = `Bearer ${proxy.secretKey}`;
    const answer = await fetch(target + url, {
      method,
      headers: passed as Record<string, string>,
      ...(body.length > 0 && { body }),
    });
    const text = await answer.text();
    const fate = isCharge ? fates.shift() : undefined;
    if (fate) fate(response);
    else sendJson(response, answer.status, text);
  };
  const server = createServer((request, response) => void pass(request, response));
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  server.unref();
  const proxy: Proxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    secretKey: undefined,
  };
  return proxy;
}

function sendJson(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(text);
}
