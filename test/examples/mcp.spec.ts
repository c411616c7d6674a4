/** The example as in its README: tool server and consumer as processes, against a real stack. */
import assert from 'node:assert/strict';
import { execFile, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createAccount, type TestAccount } from '../support/accounts.ts';
import { makeBudget, makeKey, showBudget } from '../support/budget-requests.ts';
import { charge, read } from '../support/http.ts';
import { askForTopUp, control, openCheckout } from '../support/payments.ts';
import { choosePort } from '../support/ports.ts';
import { startStack, until, type Stack } from '../support/stack.ts';
import { startExample } from './start-example.ts';

const FOLDER = join(import.meta.dirname, '../../examples/mcp-tool-server');
const text = 'Otters swim. Otters eat fish.';

interface ChargeMeta {
  readonly id: string;
  readonly amount: number;
  readonly balance: number;
  readonly receipt: string;
}

function startToolServer(fareboxUrl: string, secretKey: string) {
  return startExample('mcp-tool-server/server.ts', {
    FAREBOX_URL: fareboxUrl,
    FAREBOX_SECRET_KEY: secretKey,
  });
}

async function call(client: Client, name: string, args: Record<string, unknown> = { text }) {
  const {
    isError,
    content,
    structuredContent,
    _meta: meta,
  } = await client.callTool({
    name,
    arguments: args,
  });
  const [block] = content;
  return {
    isError: isError === true,
    text: block?.type === 'text' ? block.text : assert.fail('no text for the model'),
    structured: structuredContent as Record<string, unknown>,
    error: meta?.['farebox/error'],
    charge: meta?.['farebox/charge'] as ChargeMeta | undefined,
  };
}

describe('example: a paid MCP tool server', () => {
  let stack: Stack | undefined;
  let fareboxUrl: string;
  let owner: TestAccount;
  let server: { child: ChildProcess; url: URL } | undefined;

  before(async () => {
    stack = await startStack();
    fareboxUrl = stack.api.url;
    owner = await createAccount(stack.env, 0);
    server = await startToolServer(fareboxUrl, owner.developerKey);
  });
  after(async () => {
    server?.child.kill();
    await stack?.stop();
  });

  const newConsumer = (balance: number) => createAccount(stack?.env ?? {}, balance);

  async function connect(headers: Record<string, string>, mode: 'legacy' | 'auto' = 'auto') {
    assert(server);
    const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } });
    await client.connect(
      new StreamableHTTPClientTransport(server.url, { requestInit: { headers } }),
    );
    return client;
  }

  const balanceOf = async ({ consumerKey }: TestAccount) =>
    (await read<{ balance: number }>(`${fareboxUrl}/v1/balance`, consumerKey)).balance;

  for (const mode of ['legacy', 'auto'] as const) {
    it(`charges for a call and returns the receipt, to a client of the ${mode} protocol`, async () => {
      const consumer = await newConsumer(1);
      const client = await connect({ 'X-Service-Key': consumer.consumerKey }, mode);
      const result = await call(client, 'word_count');
      await client.close();
      assert.equal(result.isError, false);
      assert.deepEqual(result.structured, { words: 5, sentences: 2, characters: 29 });
      assert.deepEqual(JSON.parse(result.text), result.structured);
      assert.equal(result.charge?.amount, 0.01);
      assert.equal(result.charge.balance, 0.99);
      assert.equal(await balanceOf(consumer), 0.99);
      const usage = await read<{ charges: ChargeMeta[] }>(
        `${fareboxUrl}/v1/usage`,
        consumer.consumerKey,
      );
      assert.equal(usage.charges[0]?.receipt, result.charge.receipt);
    });
  }

  it('takes the key from a bearer token, for hosts that cannot send X-Service-Key', async () => {
    const consumer = await newConsumer(1);
    const client = await connect({ Authorization: `Bearer ${consumer.consumerKey}` });
    assert.equal((await call(client, 'word_count')).charge?.balance, 0.99);
    await client.close();
  });

  it('does not run a tool without a key', async () => {
    const client = await connect({});
    const result = await call(client, 'word_count');
    await client.close();
    assert.equal(result.isError, true);
    assert.partialDeepStrictEqual(result.error, { code: 'invalid_api_key' });
    assert.match(result.text, /X-Service-Key/);
    assert.equal(result.charge, undefined);
  });

  it('tells the model where to top up when the balance is too low', async () => {
    const consumer = await newConsumer(1.5);
    const client = await connect({ 'X-Service-Key': consumer.consumerKey });
    const result = await call(client, 'summarize');
    await client.close();
    assert.equal(result.isError, true);
    assert.partialDeepStrictEqual(result.error, {
      code: 'insufficient_balance',
      balance: 1.5,
      required: 2,
      shortfall: 0.5,
      tool: 'summarize',
    });
    assert.match(result.text, /costs \$2\.00 and the balance is \$1\.50\..*top up at http/);
    assert.equal(await balanceOf(consumer), 1.5);
  });

  it('does not charge for a call with wrong arguments', async () => {
    const consumer = await newConsumer(5);
    const client = await connect({ 'X-Service-Key': consumer.consumerKey });
    const result = await call(client, 'summarize', { text, sentences: 0 });
    await client.close();
    assert.equal(result.isError, true);
    assert.equal(await balanceOf(consumer), 5);
  });

  it('does not run a tool while the billing service is away', async () => {
    const away = await startToolServer(
      `http://127.0.0.1:${await choosePort()}`,
      owner.developerKey,
    );
    try {
      const client = new Client({ name: 'test', version: '1.0.0' });
      const requestInit = { headers: { 'X-Service-Key': owner.consumerKey } };
      await client.connect(new StreamableHTTPClientTransport(away.url, { requestInit }));
      const result = await call(client, 'word_count');
      await client.close();
      assert.equal(result.isError, true);
      assert.partialDeepStrictEqual(result.error, {
        code: 'service_unavailable',
        outcome: 'not_held',
      });
    } finally {
      away.child.kill();
    }
  });

  it('refuses requests from web pages', async () => {
    assert(server);
    const response = await fetch(server.url, {
      method: 'POST',
      headers: { origin: 'https://evil.example', 'content-type': 'application/json' },
      body: '{}',
    });
    assert.equal(response.status, 403);
  });

  /** With a spend key for tools, of the budget `id`. */
  async function newAgent(balance: number) {
    const consumer = await newConsumer(balance);
    const { id } = await makeBudget({ url: fareboxUrl }, consumer.consumerKey);
    const { key } = await makeKey({ url: fareboxUrl }, consumer.consumerKey, id);
    return { ...consumer, budgetId: id, spendKey: key };
  }

  const runAgent = (agent: { consumerKey: string; spendKey: string }, budget: string) =>
    promisify(execFile)(process.execPath, [join(FOLDER, '../agent.ts')], {
      env: {
        FAREBOX_URL: fareboxUrl,
        FAREBOX_CONSUMER_KEY: agent.consumerKey,
        FAREBOX_SPEND_KEY: agent.spendKey,
        MCP_URL: server?.url.href,
        BUDGET: budget,
      },
      timeout: 300_000,
    });

  it('serves a consumer who runs out of money, tops up through the checkout and continues', async () => {
    assert(server);
    const consumer = await newConsumer(5);
    const { stdout } = await promisify(execFile)(process.execPath, [join(FOLDER, 'consumer.ts')], {
      env: {
        FAREBOX_URL: fareboxUrl,
        FAREBOX_CONSUMER_KEY: consumer.consumerKey,
        MCP_URL: server.url.href,
      },
    });
    assert.match(stdout, /The balance is \$5\.00\./);
    assert.match(stdout, /Refused: the balance of \$1\.00 does not cover \$2\.00\./);
    assert.match(stdout, /credited: the balance is \$6\.00\./);
    assert.match(stdout, /the same receipt:\nhmac_sha256\./);
    assert.equal(await balanceOf(consumer), 4);
    const { budgets } = await read<{ budgets: { used: number }[] }>(
      `${fareboxUrl}/v1/budgets`,
      consumer.consumerKey,
    );
    assert.deepEqual(
      budgets.map(({ used }) => used),
      [6],
    );
  });

  it('serves an agent that understands a refusal and tops itself up, within its budget', async () => {
    const agent = await newAgent(2);
    const { stdout } = await runAgent(agent, '8');
    assert.equal(stdout.match(/^call \d+: .*Otters/gm)?.length, 3);
    assert.match(stdout, /topped up \$5: the balance is \$5, \$3 of the budget is left/);
    assert.match(stdout, /\$3 of the budget is left, and \$5 is needed. Pay at http/);
    assert.equal(await balanceOf(agent), 1);
    const { used } = await showBudget({ url: fareboxUrl }, agent.consumerKey, agent.budgetId);
    assert.equal(used, 6);
  });

  it('serves an agent that owes money, which its first top-up repays too', async () => {
    assert(stack);
    const agent = await newAgent(0);
    const key = agent.consumerKey;
    const paid = await askForTopUp(stack.api, '/v1/top-up', { key, body: { amount: 20 } });
    assert.equal(paid.status, 201);
    const spender = { ...agent, developerKey: owner.developerKey };
    assert.equal((await charge(stack.api, spender, { amount: 20 })).status, 201);
    const { payments } = (await control(stack.simulator, 'payments')) as {
      payments: readonly { payment_intent: string }[];
    };
    await control(stack.simulator, 'disputes', { payment_intent: payments.at(-1)?.payment_intent });
    const debt = async () => (await read<{ debt: number }>(`${fareboxUrl}/v1/balance`, key)).debt;
    await until(async () => (await debt()) === 20);
    const { stdout } = await runAgent(agent, '25');
    assert.match(
      stdout,
      /^topped up \$22: the balance is \$2, \$3 of the budget is left\ncall 2: /,
    );
    assert.equal(await debt(), 0);
  });

  it('serves no agent whose spend key is refused, which says why', async () => {
    const agent = await newAgent(5);
    const { id } = await makeBudget({ url: fareboxUrl }, agent.consumerKey, { limit: 1 });
    const { key: spendKey } = await makeKey({ url: fareboxUrl }, agent.consumerKey, id);
    await assert.rejects(runAgent({ ...agent, spendKey }, '8'), {
      code: 1,
      stdout:
        /^call 1 is refused: The budget allows \$1\.00 in total; \$1\.00 is left\. http.*budget=bdg_.*\n$/,
      stderr: '',
    });
    await assert.rejects(runAgent({ ...agent, spendKey: '' }, '8'), {
      code: 1,
      stdout: /^call 1 is refused: .*key/,
      stderr: '',
    });
    assert.equal(await balanceOf(agent), 5);
  });

  it('serves no agent whose budget is no number', async () => {
    const agent = await newAgent(1);
    await assert.rejects(runAgent(agent, '$8'), { code: 1, stdout: '' });
    assert.equal(await balanceOf(agent), 1);
  });

  it('serves an agent that stops at a top-up which is not paid yet, and makes no second one', async () => {
    const agent = await newAgent(0);
    const { sessionUrl } = await openCheckout({ url: fareboxUrl }, agent, 5);
    // A card whose bank wants each payment to be confirmed that its owner does not make.
    const body = new URLSearchParams({ card: '4000002500003155', save: 'true' });
    await fetch(sessionUrl, { method: 'POST', body });
    await until(async () => (await balanceOf(agent)) === 5);
    const { stdout } = await runAgent(agent, '20');
    assert.match(stdout, /\$5 is not paid yet \(tu_.*confirm it at http.*top-up\/confirm/);
    const { topUps } = await read<{ topUps: { status: string }[] }>(
      `${fareboxUrl}/v1/top-up`,
      agent.consumerKey,
    );
    assert.deepEqual(
      topUps.map(({ status }) => status),
      ['pending', 'completed'],
    );
  });
});
