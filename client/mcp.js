/** Paid MCP tools, for versions 1 and 2 of the SDK: `server.registerTool(name, config, paidTool(...))`. */
import { checkCall, checkResult, isUnfinished } from './mcp-results.js';
import { checkHandler, checkPaid, isRefusal, runPaid } from './paid.js';
import { CHARGE_META, ERROR_META, explain, refusalOf } from './refusals.js';
import { serviceKeyOf } from './service-key.js';

export function paidTool(farebox, options, handler) {
  checkPaid(options);
  checkHandler(handler);
  return async (...input) => {
    // A tool without arguments is called with only the context.
    const context = input.at(-1) ?? {};
    checkCall(options, context);
    try {
      const { result, charge } = await runPaid(farebox, options, {
        apiKey: keyIn(context),
        input,
        signal: context.mcpReq?.signal ?? context.signal,
        run: async () => checkResult(options, await handler(...input)),
        hasFailed: (result) => isUnfinished(result) || lacksOutput(options, result),
      });
      return charge?.paid ? withCharge(result, charge) : result;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return refused(options, refusalOf(error).error);
    }
  };
}

/** The SDK turns it into an error after this. */
const lacksOutput = ({ hasOutputSchema }, { structuredContent }) =>
  hasOutputSchema === true && structuredContent === undefined;

/** The key of an HTTP request, in the shape of v2 or v1 of the SDK. On stdio, the process has one consumer. */
function keyIn({ http, requestInfo }) {
  const headers = http?.req?.headers ?? requestInfo?.headers;
  return headers ? serviceKeyOf(headers) : globalThis.process?.env?.SERVICE_KEY;
}

function withCharge(result, { id, amount, balance, receipt }) {
  const { _meta: meta, ...rest } = result;
  return { ...rest, _meta: { ...meta, [CHARGE_META]: { id, amount, balance, receipt } } };
}

/**
 * An `isError` result, not a protocol error: every MCP client shows it to the model. Clients of version 1 compare
 * `structuredContent` with the tool's `outputSchema` even then, and would report a protocol error.
 */
function refused({ tool, hasOutputSchema = false }, error) {
  return {
    isError: true,
    content: [{ type: 'text', text: explain(tool, error) }],
    ...(hasOutputSchema ? {} : { structuredContent: { error } }),
    _meta: { [ERROR_META]: error },
  };
}
