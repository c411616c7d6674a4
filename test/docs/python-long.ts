/**
 * `npm run test:python`: follows docs/python.md through a proxy that loses the responses to the first charge: one is a
 * proxy's own, the next is none. Needs Python 3.10 or newer with venv; pip installs what the page says.
 */
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
    const url = await startLossyProxy(stack.api.url);
    await followPage('docs/python.md', folder, { url, account, env: stack.env });
    process.stdout.write('docs/python.md does what it says.\n');
  } finally {
    await stack.stop();
  }
} finally {
  await rm(folder, { recursive: true, force: true });
  await mochaGlobalTeardown();
}

/** Ends with this process. */
async function startLossyProxy(target: string): Promise<string> {
  let charges = 0;
  const pass = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = 'GET', url = '', headers } = request;
    const body = await buffer(request);
    const { host: _, connection: __, 'content-length': ___, ...passed } = headers;
    const answer = await fetch(target + url, {
      method,
      headers: passed as Record<string, string>,
      ...(body.length > 0 && { body }),
    });
    const text = await answer.text();
    if (url === '/v1/charges') charges += 1;
    if (url === '/v1/charges' && charges === 1) response.writeHead(502).end('<h1>Bad Gateway</h1>');
    else if (url === '/v1/charges' && charges === 2) response.destroy();
    else response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
  };
  const proxy = createServer((request, response) => void pass(request, response));
  await new Promise<void>((resolve) => {
    proxy.listen(0, '127.0.0.1', resolve);
  });
  proxy.unref();
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}
