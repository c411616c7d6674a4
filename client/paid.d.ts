/** Options of paid calls, for all frameworks. */
import type { AskOptions } from './approvals.js';
import type { Amount, Charge, OnUnavailable, Units } from './index.js';

/** Dollars, or units of the tool's rate card. */
type Cost = Amount | { units: Units };

interface CommonOptions {
  /** The name under which to charge. */
  tool: string;
  /**
   * How long a call may take, with its `settle`, before it is given up and its hold released: 1 to 86,340,000 ms,
   * as a hold lasts a day. Default 300,000. A `price` function may take as long before that.
   */
  timeoutMs?: number | undefined;
  /** `run_unpaid`: when Farebox cannot be reached, the call runs without payment. Default: the setting of the client. */
  onUnavailable?: OnUnavailable | undefined;
  /**
   * Asks the owner of the account when a budget or the balance refuses the call, waits for the answer, and
   * then runs the call. Its `timeoutMs` should be shorter than your callers wait.
   */
  ask?: true | AskOptions | undefined;
}

/**
 * Declared as methods, because TypeScript lets the parameters of a method be narrower: your function may
 * declare its parameter with the full type of your framework. Only the members that the client uses are
 * declared here.
 */
interface Functions<Input extends unknown[], Result> {
  /**
   * Returns dollars or `{ units }`. 0 is free, as are units that are all 0: the call runs without a request to
   * Farebox, and needs no key. Other units that cost nothing are free too, for a caller with a key.
   */
  price(...input: Input): Cost | Promise<Cost>;
  settle(result: Result): Cost | Promise<Cost>;
}

/** A price known in advance: fixed, or computed from the call's arguments. */
interface Priced<Input extends unknown[]> {
  price: Cost | Functions<Input, never>['price'];
  max?: undefined;
  settle?: undefined;
}

/** A cost known only afterwards: `max` is held, then `settle` computes the cost from the result. */
interface Settled<Result> {
  price?: undefined;
  max: Cost;
  /**
   * Returns dollars or `{ units }`. 0 is free, as are units that cost nothing. More than `max` is charged as `max`.
   * For anything else, nothing is charged, and the caller gets `billing_error`. To read the body of a `Response`,
   * of a fetch handler or of Hono, read a copy: `response.clone()`.
   */
  settle: Functions<[], Result>['settle'];
}

export type PaidOptions<Input extends unknown[], Result> = CommonOptions &
  (Priced<Input> | Settled<Result>);

/** The charge in a paid MCP result, at `_meta['farebox/charge']`. */
export type ChargeMeta = Pick<Charge, 'id' | 'amount' | 'balance' | 'receipt'>;
