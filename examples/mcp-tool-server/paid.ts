/**
 * Makes a tool a paid one: first charges the consumer, then runs the tool. When the charge fails, the tool does not run
 * and the model gets the reason. When the tool fails, the charge is refunded. (Specification sections 4.3 and 7.)
 */
import { FareboxError, serviceKeyOf, type Farebox, type PricedFarebox } from '@farebox/client';
import type { CallToolResult, ServerContext } from '@modelcontextprotocol/server';

/** The key of the charge in a result's `_meta`: `{ id, amount, balance, receipt }`. */
const CHARGE_META = 'farebox/charge';

type ToolOutput = Record<string, unknown>;

export function paid<Tool extends string, Args>(
  farebox: Farebox,
  prices: PricedFarebox<Tool>,
  tool: Tool,
  run: (args: Args) => ToolOutput,
): (args: Args, ctx: ServerContext) => Promise<CallToolResult> {
  return async (args, ctx) => {
    try {
      const apiKey = serviceKeyOf(ctx.http?.req?.headers ?? {});
      const { id, amount, balance, receipt } = await prices.charge({ apiKey, tool });
      const output = await orRefund(farebox, id, () => run(args));
      return {
        content: [{ type: 'text', text: JSON.stringify(output) }],
        structuredContent: output,
        _meta: { [CHARGE_META]: { id, amount, balance, receipt } },
      };
    } catch (error) {
      if (!FareboxError.isInstance(error)) throw error;
      return refusal(tool, error);
    }
  };
}

/** Refunds the charge when the call fails. */
async function orRefund<Output>(farebox: Farebox, chargeId: string, run: () => Output) {
  try {
    return await run();
  } catch (error) {
    await farebox.refund({ chargeId });
    throw error;
  }
}

/** An `isError` result, not a protocol error: every MCP client shows it to the model. */
function refusal(tool: string, error: FareboxError): CallToolResult {
  const { code, message, outcome, requestId, balance, required, shortfall, topUpUrl } = error;
  const facts = { code, message, outcome, requestId, balance, required, shortfall, topUpUrl };
  return {
    isError: true,
    content: [{ type: 'text', text: explain(tool, error) }],
    // The round trip through JSON removes undefined members.
    structuredContent: { error: JSON.parse(JSON.stringify(facts)) as ToolOutput },
  };
}

/** For the model: the problem, the remedy, and whether a retry helps. */
function explain(tool: string, error: FareboxError): string {
  switch (error.code) {
    case 'insufficient_balance':
      return (
        `Payment required: ${tool} costs ${error.required} USD and the balance is ` +
        `${error.balance} USD. Ask the user to top up at ${error.topUpUrl}. ` +
        'Calling again before that will fail.'
      );
    case 'invalid_api_key':
      return (
        `${tool} is a paid tool. The X-Service-Key header must carry the user's Farebox consumer ` +
        'key; it is missing or not valid. Calling again without it will fail.'
      );
    case 'service_unavailable':
      return error.outcome === 'unknown'
        ? `${tool} did not run: the billing service did not answer in time. It may have been paid.`
        : `${tool} did not run: the billing service cannot be reached. Nothing was charged; try again later.`;
    default:
      // For the operator: a wrong secret key, a price that cannot be charged.
      process.stderr.write(`${tool}: ${error.code}: ${error.message}\n`);
      return `${tool} did not run: it cannot be billed (${error.code}). Calling again will not help.`;
  }
}
