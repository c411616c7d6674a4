/** Types of paid MCP tools. */
import type { Farebox, OnUnavailable } from './index.js';
import type { PaidOptions } from './paid.js';

export type { ChargeMeta, PaidOptions } from './paid.js';

export type PaidToolOptions<Input extends unknown[], Result> = PaidOptions<Input, Result> & {
  /**
   * True for a tool that is registered with an `outputSchema`: then the error of a refusal is only in `_meta`, because
   * clients of version 1 of the SDK validate `structuredContent` against the schema. A result without
   * `structuredContent` is then not paid for. The SDK validates a result that has it only after it is paid
   * for, so the handler must throw when its output is wrong. Default false.
   */
  hasOutputSchema?: boolean | undefined;
};

/** The parameters of the handler, inferred from the handler alone. A `price()` may take fewer of them. */
type Taken<Input extends unknown[]> = { [N in keyof Input]: NoInfer<Input[N]> };

/**
 * Makes an MCP tool's handler paid, for versions 1 and 2 of the SDK: holds the price, runs the handler, and captures
 * the cost. When the handler throws, answers `isError`, asks for input first (`inputRequired()`), takes too long or is
 * canceled, the hold is released. (The SDK does not tell a stateless server when a client of a protocol
 * before 2026-07-28 cancels.) The result's `_meta['farebox/charge']` has the charge and its receipt. A
 * refusal is a result with `isError`, a text for the model, and the error in `structuredContent` and in
 * `_meta['farebox/error']`.
 * A call that is requested as a task, or whose result is a task, throws, and nobody pays.
 *
 * The consumer's key comes from the HTTP request (see `serviceKeyOf`), or on stdio from the environment's SERVICE_KEY.
 *
 * @example server.registerTool('search', config, paidTool(farebox, { tool: 'search', price: '0.02' }, handler));
 */
export declare function paidTool<Input extends unknown[], Result extends object>(
  farebox: Farebox<OnUnavailable>,
  options: PaidToolOptions<Taken<Input>, NoInfer<Result>>,
  handler: (...input: Input) => Result | Promise<Result>,
): (...input: Input) => Promise<Result>;
