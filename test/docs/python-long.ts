/** `npm run test:python`: follows docs/python.md. Needs Python 3.10 or newer with venv; pip installs what the page says. */
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
    await followPage('docs/python.md', folder, { url: stack.api.url, account, env: stack.env });
    process.stdout.write('docs/python.md does what it says.\n');
  } finally {
    await stack.stop();
  }
} finally {
  await rm(folder, { recursive: true, force: true });
  await mochaGlobalTeardown();
}
