/**
 * `npm run test:api`: Schemathesis generates requests from the OpenAPI document and sends them to a started
 * stack. No reply may be a 5xx, have an undocumented status, or differ from its schema. Needs Python
 * 3.10 or newer with venv; installs the pinned packages of requirements.txt into a cache folder.
 */
import { spawn } from 'node:child_process';
import { hash, randomInt } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ChargeReply } from '../../src/schemas/charges.ts';
import { GrantReply } from '../../src/schemas/grants.ts';
import { InvocationReply } from '../../src/schemas/invocations.ts';
import { ToolReply } from '../../src/schemas/tools.ts';
import { CheckoutReply } from '../../src/schemas/top-ups.ts';
import { createTestAccount, type TestAccount } from '../support/accounts.ts';
import { bodyOf, call, charge } from '../support/http.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { startStack, type Server } from '../support/stack.ts';

const { values } = parseArgs({
  options: {
    examples: { type: 'string', default: '30' },
    seed: { type: 'string', default: process.env['SEED'] ?? String(randomInt(2 ** 32)) },
    operation: { type: 'string' },
  },
});

const REQUIREMENTS = join(import.meta.dirname, 'requirements.txt');
const CONFIG = join(import.meta.dirname, 'schemathesis.toml');

process.stdout.write(`SEED=${values.seed} --examples ${values.examples}\n`);
const program = await install();
await mochaGlobalSetup();
try {
  process.exitCode = await test(program);
} finally {
  await mochaGlobalTeardown();
}

/** Runs once for each list of requirements; returns the program's path. */
async function install(): Promise<string> {
  const version = hash('sha256', readFileSync(REQUIREMENTS)).slice(0, 12);
  const folder = join(import.meta.dirname, '../../node_modules/.cache', `schemathesis-${version}`);
  const installed = join(folder, 'bin/schemathesis');
  if (!existsSync(installed)) {
    await succeed('python3', ['-m', 'venv', folder]);
    await succeed(join(folder, 'bin/pip'), ['install', '--quiet', '-r', REQUIREMENTS]);
  }
  return installed;
}

async function test(schemathesis: string): Promise<number> {
  const stack = await startStack({ env: { ALLOW_PRIVATE_ENDPOINTS: 'true' } });
  try {
    const account = await createTestAccount(stack.database.url, 1_000_000);
    const args = ['--config-file', CONFIG, 'run', `${stack.api.url}/openapi.json`];
    const only = values.operation ? ['--include-operation-id', values.operation] : [];
    return await run(schemathesis, [...args, ...only, ...options()], {
      ...process.env,
      CONSUMER_KEY: account.consumerKey,
      DEVELOPER_KEY: account.developerKey,
      LEGACY_KEY: account.legacyKey,
      HOOKS: join(import.meta.dirname, 'hooks.py'),
      KNOWN_IDS: JSON.stringify(await makeOneOfEach(stack.api, account)),
    });
  } finally {
    await stack.stop();
  }
}

function options(): string[] {
  const size = ['--max-examples', values.examples, '--seed', values.seed];
  return [...size, '--continue-on-failure', '--request-timeout', '20', '--no-color'];
}

/** Ids of existing objects, by the path that reads them and by the member that names them. */
async function makeOneOfEach(api: Server, account: TestAccount): Promise<Record<string, string>> {
  const { developerKey, consumerKey, legacyKey } = account;
  const legacy = { headers: { 'x-service-key': legacyKey } };
  const made = await charge(api, account);
  const tool = await call(api, 'POST', '/v1/tools', { key: developerKey, body: { name: 'known' } });
  const topUp = await call(api, 'POST', '/v1/checkout', { key: consumerKey, body: { amount: 10 } });
  const agent = { id: 'known', name: 'Known', protocol: 'http', endpoint: 'http://127.0.0.1:9/' };
  await call(api, 'POST', '/register', { ...legacy, body: agent });
  const asked = { callerId: 'me', targetAgentId: 'known', type: 'session', expiresAt: inAWeek() };
  const grant = await call(api, 'POST', '/grant', { ...legacy, body: asked });
  const { id: grantId } = bodyOf(grant, 201, GrantReply);
  const invocation = { targetAgentId: 'known', grantId, capability: 'test', payload: {} };
  const invoked = await call(api, 'POST', '/invoke', { ...legacy, body: invocation });
  const chargeId = bodyOf(made, 201, ChargeReply).id;
  const invocationId = bodyOf(invoked, 202, InvocationReply).id;
  return {
    '/v1/charges/{id}': chargeId,
    '/v1/charges/{id}/refund': chargeId,
    '/v1/tools/{id}': bodyOf(tool, 201, ToolReply).id,
    '/v1/top-up/{id}': bodyOf(topUp, 201, CheckoutReply).topUpId,
    '/grant/{id}': grantId,
    '/invoke/{id}': invocationId,
    '/receipts/{id}': invocationId,
    targetAgentId: 'known',
    grantId,
  };
}

function inAWeek(): string {
  return new Date(Date.now() + 7 * 86_400_000).toISOString();
}

async function succeed(program: string, args: readonly string[]): Promise<void> {
  const code = await run(program, args, process.env);
  if (code !== 0) throw new Error(`${program} ended with ${code}`);
}

function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, stdio: 'inherit' });
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}
