/** Types of paid MCP tools. */
import type { Farebox, OnUnavailable } from './index.js';
import type { PaidOptions } from './paid.js';

export type { ChargeMeta, PaidOptions } from './paid.js';

/**
 * Makes an MCP tool's handler a paid one, for both generations of the SDK. The price is held, the handler runs,
 * and what it cost is captured; when it throws, answers `isError`, takes too long or is cancelled, the hold is
 * released. The result's `_meta['farebox/charge']` has the charge and its receipt. A refusal is a result with
 * `isError`, a text for the model, and the error in `structuredContent`.
 *
 * The consumer's key is that of the HTTP request (see `serviceKeyOf`), on stdio the environment's SERVICE_KEY.
 *
 * @example
 * server.registerTool('search', config, paidTool(farebox, { tool: 'search', price: '0.02' }, handler));
 */
export declare function paidTool<Input extends unknown[], Result extends object>(
  farebox: Farebox<OnUnavailable>,
  options: PaidOptions<NoInfer<Input>, NoInfer<Result>>,
  handler: (...input: Input) => Result | Promise<Result>,
): (...input: Input) => Promise<Result>;
