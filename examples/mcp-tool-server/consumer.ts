/**
 * A consumer's day: creates a spend key, uses a paid MCP tool until the balance is used up, is refused, tops up through
 * the hosted checkout, continues. Settings: FAREBOX_URL, FAREBOX_CONSUMER_KEY, MCP_URL. Exits with 1 when a check
 * fails.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { z } from 'zod';

const TOOL = 'summarize';
const CALLS_MAX = 50;
const TOP_UP_DOLLARS = 5;
const CREDIT_TIMEOUT_MS = 60_000;
/** A test card that pays, in the payment simulator and in Stripe's test mode. */
const CARD = '4242424242424242';

const TEXT = `An otter is a mammal that lives in the water. Most otters eat fish. A sea otter
  sleeps on its back and holds the hand of another otter, so that the water does not part them.
  It is raining today.`;

const Budget = z.object({ id: z.string() });
const SpendKey = z.object({ key: z.string() });
const Balance = z.object({ balance: z.number() });
const Checkout = z.object({ sessionUrl: z.url(), topUpId: z.string() });
const Usage = z.object({ charges: z.array(z.object({ id: z.string(), receipt: z.string() })) });
const Meta = z.object({
  'farebox/charge': z.object({
    id: z.string(),
    amount: z.number(),
    balance: z.number(),
    receipt: z.string(),
  }),
});
const Summary = z.object({ summary: z.string() });
const Refusal = z.object({
  'farebox/error': z.object({
    code: z.string(),
    balance: z.number(),
    required: z.number(),
    topUpUrl: z.string(),
  }),
});

const fareboxUrl = setting('FAREBOX_URL');
const consumerKey = setting('FAREBOX_CONSUMER_KEY');
const mcpUrl = new URL(setting('MCP_URL', 'http://127.0.0.1:8090/mcp'));

const client = new Client(
  { name: 'consumer', version: '0.1.0' },
  { versionNegotiation: { mode: 'auto' } },
);
await client.connect(
  new StreamableHTTPClientTransport(mcpUrl, {
    requestInit: { headers: { 'X-Service-Key': await createSpendKey() } },
  }),
);
say(`Connected to ${mcpUrl.href}. The balance is ${usd(await balance())}.`);

const refusal = await useUntilRefused();
say(`Refused: the balance of ${usd(refusal.balance)} does not cover ${usd(refusal.required)}.`);
say(`The server says where to top up: ${refusal.topUpUrl}`);

await topUp();

const charge = await callTool();
assert('receipt' in charge, 'the call after the top-up was refused');
const usage = Usage.parse(await farebox('GET', '/v1/usage'));
const listed = usage.charges.find(({ id }) => id === charge.id);
assert.equal(listed?.receipt, charge.receipt, 'the usage list shows another receipt');
say(`The usage list has ${charge.id} with the same receipt:\n${charge.receipt}`);
await client.close();

/** The tool server gets a key that can only spend. The consumer key could also charge the saved card. */
async function createSpendKey(): Promise<string> {
  const { id } = Budget.parse(await farebox('POST', '/v1/budgets', { name: 'Text tools' }));
  return SpendKey.parse(await farebox('POST', `/v1/budgets/${id}/keys`, {})).key;
}

/** Calls the tool until the balance is too low. Returns the refusal. */
async function useUntilRefused() {
  for (let calls = 0; calls < CALLS_MAX; calls += 1) {
    const outcome = await callTool();
    if ('receipt' in outcome) continue;
    assert.equal(await balance(), outcome.balance, 'the refusal shows another balance');
    return outcome;
  }
  throw new Error(`not refused in ${CALLS_MAX} calls; take an account with a smaller balance`);
}

/** Makes one paid call. Returns its charge, or the reason of its refusal. */
async function callTool() {
  const {
    isError,
    structuredContent,
    _meta: meta,
  } = await client.callTool({ name: TOOL, arguments: { text: TEXT, sentences: 1 } });
  if (isError) {
    const { 'farebox/error': error } = Refusal.parse(meta);
    assert.equal(error.code, 'insufficient_balance');
    return error;
  }
  const { summary } = Summary.parse(structuredContent);
  const { 'farebox/charge': charge } = Meta.parse(meta);
  say(`${TOOL}: "${summary}" for ${usd(charge.amount)}, ${usd(charge.balance)} left`);
  return charge;
}

/** Pays a hosted checkout like a person with a browser, and waits for the credit. */
async function topUp() {
  const before = await balance();
  const { sessionUrl, topUpId } = Checkout.parse(
    await farebox('POST', '/v1/checkout', { amount: TOP_UP_DOLLARS }),
  );
  say(`Topping up ${usd(TOP_UP_DOLLARS)} (${topUpId}) at ${sessionUrl}`);
  const page = await fetch(sessionUrl);
  assert.equal(page.status, 200, 'the checkout page does not open');
  const payment = await fetch(sessionUrl, {
    method: 'POST',
    body: new URLSearchParams({ card: CARD }),
    redirect: 'manual',
  });
  assert(payment.status < 400, `the payment got ${payment.status}`);

  const deadline = Date.now() + CREDIT_TIMEOUT_MS;
  while ((await balance()) === before) {
    assert(Date.now() < deadline, 'paid, but not credited in a minute');
    await sleep(200);
  }
  const after = await balance();
  assert.equal(micros(after), micros(before) + micros(TOP_UP_DOLLARS), 'credited another amount');
  say(`Paid and credited: the balance is ${usd(after)}.`);
}

async function balance(): Promise<number> {
  return Balance.parse(await farebox('GET', '/v1/balance')).balance;
}

async function farebox(method: string, path: string, body?: object): Promise<unknown> {
  const response = await fetch(`${fareboxUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${consumerKey}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  if (response.status === 503) {
    // This attempt changed nothing.
    await sleep(1_000);
    return farebox(method, path, body);
  }
  const text = await response.text();
  assert(response.ok, `${method} ${path} got ${response.status}: ${text}`);
  return JSON.parse(text);
}

/** Sums of dollars as binary fractions are not exact; sums of whole micro-dollars are. */
function micros(dollars: number): number {
  return Math.round(dollars * 1_000_000);
}

function usd(dollars: number): string {
  return dollars.toLocaleString('en-US', {
    style: 'currency',
    currency: 'USD',
    maximumFractionDigits: 6,
  });
}

function setting(name: string, fallback?: string): string {
  const value = process.env[name] ?? fallback;
  if (value === undefined) throw new Error(`set ${name}`);
  return value;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
