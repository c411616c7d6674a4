/**
 * An agent that pays for its tools: it understands a refusal, tops itself up from the saved card within a budget of
 * its own, and calls again. Tools get the spend key, which can only spend from the budget. The consumer key, which can
 * also charge the card, goes to Farebox alone. Settings: FAREBOX_URL, FAREBOX_CONSUMER_KEY, FAREBOX_SPEND_KEY, MCP_URL,
 * BUDGET (dollars).
 */
import { FareboxConsumer, FareboxError } from '@farebox/client';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { z } from 'zod';

/** The smallest top-up from a saved card is $0.50; fewer, larger ones cost less in fees. */
const TOP_UP_DOLLARS = 5;

/** A budget refuses too, and no top-up helps against that. */
const Refusal = z.object({
  'farebox/error': z.object({
    code: z.string(),
    message: z.string(),
    raiseUrl: z.string().optional(),
    shortfall: z.number().optional(),
    topUpUrl: z.string().optional(),
  }),
});

const consumer = new FareboxConsumer();
const headers = { 'X-Service-Key': process.env['FAREBOX_SPEND_KEY'] ?? '' };
let budget = Number(process.env['BUDGET'] ?? 10);
// No amount exceeds NaN, so such a budget would have no end.
if (Number.isNaN(budget)) throw new Error('BUDGET must be a number of dollars, such as 10');

const client = new Client({ name: 'agent', version: '0.1.0' });
const url = new URL(process.env['MCP_URL'] ?? 'http://127.0.0.1:8090/mcp');
await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));

const text = 'Otters swim. Otters eat fish. It is raining today.';
for (let calls = 1; await callTool(calls); calls += 1);
await client.close();

/** Gives false when the agent can no longer pay. */
async function callTool(call: number): Promise<boolean> {
  const result = await client.callTool({ name: 'summarize', arguments: { text, sentences: 1 } });
  if (!result.isError) {
    say(`call ${call}: ${JSON.stringify(result.structuredContent)}`);
    return true;
  }
  const { _meta: meta } = result;
  const error = Refusal.safeParse(meta).data?.['farebox/error'];
  const { code, message, raiseUrl, shortfall, topUpUrl } = error ?? {};
  if (code !== 'insufficient_balance' || shortfall === undefined || topUpUrl === undefined) {
    say(
      `call ${call} is refused: ${message ?? 'the tool failed'}${raiseUrl ? ` ${raiseUrl}` : ''}`,
    );
    process.exitCode = 1;
    return false;
  }
  // A top-up repays a debt first, and is of whole cents. Amounts have at most six decimals.
  const { debt } = await consumer.balance();
  const cents = Math.ceil(Number(((shortfall + debt) * 100).toFixed(4)));
  return topUp(Math.max(cents / 100, TOP_UP_DOLLARS), topUpUrl);
}

async function topUp(amount: number, topUpUrl: string): Promise<boolean> {
  if (amount > budget) {
    say(`$${budget} of the budget is left, and $${amount} is needed. Pay at ${topUpUrl}`);
    return false;
  }
  try {
    const { status, balance, topUpId, sessionUrl } = await consumer.topUp({ amount });
    budget -= amount;
    if (status === 'completed') {
      say(`topped up $${amount}: the balance is $${balance}, $${budget} of the budget is left`);
      return true;
    }
    // It may still be paid, and so would another one.
    say(`$${amount} is not paid yet (${topUpId}). ${confirmation(sessionUrl)}`);
    return false;
  } catch (error) {
    if (!FareboxError.isInstance(error)) throw error;
    // Nobody knows whether it is paid. A call with the same key tells, and does not pay twice.
    const isUnknown = error.outcome === 'unknown';
    const key = error.idempotencyKey;
    say(
      isUnknown
        ? `the top-up of $${amount} may be paid: ask again with the idempotency key ${key}`
        : // No saved card, no consent, or the card was declined: only its owner can help.
          `cannot top up (${error.code}). Ask the owner to pay at ${error.topUpUrl ?? topUpUrl}`,
    );
    return false;
  }
}

function confirmation(sessionUrl: string | undefined): string {
  return sessionUrl ? `Ask the owner to confirm it at ${sessionUrl}` : 'Run again when it is';
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
