/** Options of paid calls, for all frameworks. */
import type { Amount, Charge, OnUnavailable } from './index.js';

interface CommonOptions {
  /** The name that is charged. */
  tool: string;
  /** How long a call may take before it is given up on and released. Default 300,000. */
  timeoutMs?: number | undefined;
  /** `run_unpaid`: when Farebox cannot be reached the call goes on without payment. Default `fail`. */
  onUnavailable?: OnUnavailable | undefined;
}

/** A price that is known before: so much, or by the call's arguments. */
interface Priced<Input extends unknown[]> {
  price: Amount | ((...input: Input) => Amount | Promise<Amount>);
  max?: undefined;
  settle?: undefined;
}

/** A cost that is known afterwards: at most `max`, which is held, then what `settle` makes of the result. */
interface Settled<Result> {
  price?: undefined;
  max: Amount;
  /** Dollars; 0 is free. More than `max` is charged as `max`. */
  settle: (result: Result) => Amount | Promise<Amount>;
}

export type PaidOptions<Input extends unknown[], Result> = CommonOptions &
  (Priced<Input> | Settled<Result>);

/** Where a paid MCP result has its charge: `_meta['farebox/charge']`. */
export type ChargeMeta = Pick<Charge, 'id' | 'amount' | 'balance' | 'receipt'>;
