/**
 * Runs the programs of the client's README. They are excerpts, so each gets what it takes for granted, then a look at
 * what it did. Each runs in a process and for an account of its own.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createAccount } from '../support/accounts.ts';
import type { Environment } from '../support/stack.ts';
import { blocksOf } from './pages.ts';

const PAGE = 'client/README.md';
const ROOT = join(import.meta.dirname, '../..');
/** Each starts a process, and there are two cores. */
const AT_ONCE = 4;
const PROGRAM_TIMEOUT_MS = 300_000;

const run = promisify(execFile);

interface Excerpt {
  /** In the excerpt, and in no other before it. */
  readonly shows: string;
  readonly given?: string;
  readonly after?: string;
}

const FAREBOX = `import { Farebox } from '@farebox/client';\nconst farebox = new Farebox();\n`;
const CONSUMER = `import { FareboxConsumer } from '@farebox/client';\nconst consumer = new FareboxConsumer();\n`;
const API_KEY = 'const apiKey = process.env.FAREBOX_CONSUMER_KEY;\n';
const CHARGE = `const charge = await farebox.charge({ apiKey, tool: 'search', amount: 0.02 });\n`;

/** In the order of the page. */
const EXCERPTS: readonly Excerpt[] = [
  {
    shows: 'export async function search',
    given: 'const find = async (query) => [query];',
    after: `
      const headers = { 'x-service-key': process.env.FAREBOX_CONSUMER_KEY };
      const { results, receipt } = await search({ headers, query: 'otters' });
      assert.deepEqual(results, ['otters']);
      assert.ok((await farebox.verifyReceipt(receipt)).valid);
      assert.equal((await search({ headers: {} })).error.code, 'invalid_api_key');`,
  },
  {
    shows: 'paidTool(farebox',
    given: `${FAREBOX}
      import { Client } from '@modelcontextprotocol/client';
      import { InMemoryTransport, McpServer } from '@modelcontextprotocol/server';
      process.env.SERVICE_KEY = process.env.FAREBOX_CONSUMER_KEY;
      const server = new McpServer({ name: 'test', version: '1.0.0' });
      const config = {};
      const handler = () => ({ content: [] });`,
    after: `
      const [ours, theirs] = InMemoryTransport.createLinkedPair();
      await server.connect(ours);
      const client = new Client({ name: 'test', version: '1.0.0' });
      await client.connect(theirs);
      const { _meta: meta } = await client.callTool({ name: 'search' });
      assert.equal(meta['farebox/charge'].amount, 0.02);
      await client.close();`,
  },
  {
    shows: 'app.get(',
    given: `${FAREBOX}${API_KEY}
      import express from 'express';
      const app = express();
      const handler = (_request, response) => response.json({ found: 'otters' });`,
    after: `
      const server = app.listen(0, '127.0.0.1');
      await new Promise((resolve) => server.once('listening', resolve));
      const url = 'http://127.0.0.1:' + server.address().port + '/search';
      const response = await fetch(url, { headers: { 'x-service-key': apiKey } });
      assert.deepEqual(await response.json(), { found: 'otters' });
      assert.match(response.headers.get('x-charge-id'), /^chg_/);
      assert.ok((await farebox.verifyReceipt(response.headers.get('x-charge-receipt'))).valid);
      server.closeAllConnections();
      server.close();`,
  },
  {
    shows: 'onError: (error',
    given: `${API_KEY}
      import { Farebox } from '@farebox/client';
      import { paidTool } from '@farebox/client/mcp';
      const told = [];
      const log = { error: ({ tool, error }) => told.push([tool, error.code]) };`,
    after: `
      const mistake = { tool: 'search', max: 1, settle: () => NaN };
      const context = { requestInfo: { headers: { 'x-service-key': apiKey } } };
      await paidTool(farebox, mistake, () => ({ content: [] }))(context);
      assert.deepEqual(told, [['search', 'invalid_amount']]);`,
  },
  {
    shows: 'settle: (result)',
    given: `${API_KEY}
      import { Farebox } from '@farebox/client';
      import { paidTool } from '@farebox/client/mcp';
      const card = { input: 0.0000025, output: 0.00001 };
      await new Farebox().tools.create({ name: 'complete', card });`,
    after: `
      const usage = { input: 1_000, output: 50 };
      const handler = () => ({ content: [], _meta: { usage } });
      const context = { requestInfo: { headers: { 'x-service-key': apiKey } } };
      const { _meta: meta } = await paidTool(new Farebox(), options, handler)(context);
      assert.equal(meta['farebox/charge'].amount, 0.003);`,
  },
  {
    shows: 'farebox.quote(',
    given: `import { Farebox, usd } from '@farebox/client';
      const farebox = new Farebox();
      ${API_KEY}const [inputTokens, outputTokens] = [1_200, 350];`,
    after: 'assert.deepEqual([amount, charge.amount, charge.cardVersion], [0.0065, 0.0065, 1]);',
  },
  {
    shows: '.times(inputTokens)',
    given: `${FAREBOX}${API_KEY}const [inputTokens, outputTokens] = [1_000, 100];`,
    after: `assert.equal(amount.toString(), '0.004500');`,
  },
  {
    shows: 'farebox.refund(',
    given: FAREBOX + API_KEY + CHARGE,
    after: 'assert.equal((await farebox.charges.get(charge.id)).refunded, 0.02);',
  },
  {
    shows: 'farebox.lease(',
    given: `${FAREBOX}${CONSUMER}
      await farebox.tools.create({ name: 'summarize', price: '0.5' });
      const budget = await consumer.budgets.create({ name: 'Agent', limit: 5, allowLeases: true });
      const { key: spendKey } = await consumer.budgets.createKey(budget.id, { name: 'Session' });`,
    after: `assert.deepEqual((await farebox.earnings()).byTool, { search: 0.02 });`,
  },
  {
    shows: `onUnavailable: 'run_unpaid'`,
    given: `import { Farebox } from '@farebox/client';\n${API_KEY}`,
    after: 'assert.ok(charge.paid);',
  },
  {
    shows: 'farebox.tools.create(',
    given: FAREBOX,
    after: `assert.equal((await farebox.tools.get(id)).price, 0.03);`,
  },
  { shows: 'consumer.checkout(', after: `assert.match(sessionUrl, /^https?:/);` },
  { shows: 'consumer.budgets.create(', given: CONSUMER, after: `assert.match(key, /^fare_/);` },
  { shows: 'ask: {', given: FAREBOX + API_KEY, after: 'assert.ok(charge.paid);' },
  {
    shows: 'new FakeFarebox()',
    after: `
      assert.equal(balance, 0.98);
      const away = farebox.charge({ apiKey, tool: 'search', amount: '0.02' });
      await assert.rejects(away, { code: 'service_unavailable' });`,
  },
  {
    shows: 'farebox.batch(',
    given: `${FAREBOX}${API_KEY}
      const hold = { apiKey, tool: 'search', amount: '0.5' };
      const { id: holdId } = await farebox.holds.place(hold);`,
    after: 'assert.deepEqual(results.map(({ status }) => status), [201, 201, 201]);',
  },
  {
    shows: 'farebox.verifyReceipt(',
    given: `${FAREBOX}${API_KEY}
      const search = { apiKey, tool: 'search', amount: '0.02' };
      const { id, receipt } = await farebox.charge(search);`,
    after: 'assert.deepEqual([valid, charge.id], [true, id]);',
  },
  {
    shows: 'farebox.publicReceipt(',
    given: `${FAREBOX}${API_KEY}
      const search = { apiKey, tool: 'search', amount: '0.02' };
      const { id, receipt } = await farebox.charge(search);`,
    after: `
      assert.match(publicReceipt, /^ed25519/);
      assert.deepEqual([valid, charge.id], [true, id]);
      const unknown = farebox.publicReceipt('hmac_sha256.1.e30.' + 'A'.repeat(43));
      await assert.rejects(unknown, { code: 'not_found' });`,
  },
  {
    shows: 'verifyWebhook(',
    given: `
      import { Webhook } from 'standardwebhooks';
      const secret = 'whsec_' + Buffer.alloc(32, 1).toString('base64');
      const sent = { type: 'key.revoked', timestamp: new Date().toISOString(), data: {} };
      const body = JSON.stringify(sent);
      const now = new Date();
      const request = {
        headers: {
          'webhook-id': 'evt_1',
          'webhook-timestamp': String(Math.floor(now / 1_000)),
          'webhook-signature': new Webhook(secret).sign('evt_1', now, body),
        },
      };`,
    after: `assert.deepEqual(event, { id: 'evt_1', ...sent });`,
  },
];

/** Throws, with the line of the page, where an excerpt does not run or does not do what it says. */
export async function runClientReadme(folder: string, url: string, env: Environment) {
  const blocks = (await blocksOf(PAGE)).filter(({ language }) => language === 'js');
  assert.equal(blocks.length, EXCERPTS.length, `each js block of ${PAGE} is in this list`);
  const place = join(folder, 'client-readme');
  await mkdir(place);
  await symlink(join(ROOT, 'node_modules'), join(place, 'node_modules'));
  const failures: string[] = [];
  const waiting = [...blocks.entries()];
  const runNext = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [index, { code, line }] = next;
      const { shows, given = '', after = '' } = EXCERPTS[index] ?? assert.fail();
      assert.ok(code.includes(shows), `${PAGE}:${line} does not show ${shows}`);
      const account = await createAccount(env, 10);
      const file = join(place, `${index}.mjs`);
      const program = [`import assert from 'node:assert/strict';`, given, code, after];
      await writeFile(file, program.join('\n'));
      const keys = {
        FAREBOX_URL: url,
        FAREBOX_SECRET_KEY: account.developerKey,
        FAREBOX_CONSUMER_KEY: account.consumerKey,
      };
      const options = { env: { ...process.env, ...keys }, timeout: PROGRAM_TIMEOUT_MS };
      // All end before the service does: a program that loses it may wait for it.
      await run(process.execPath, [file], options).catch((error: Error) => {
        failures.push(`${PAGE}:${line}: ${error.message}`);
      });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, runNext));
  assert.deepEqual(failures, []);
}
