/**
 * The share of an account, divided among its callers: the holder of a key must not keep the owner from
 * revoking that key. Keys wait in a queue of their own until the share has room for them, so a session waits
 * only for what is in progress. All spend keys together have one place of the share, and take turns in which
 * each has one request.
 */
import { AccountGate, atDifferentTimes, type AccountGateOptions } from './account-gate.ts';
import { isSignedIn, type Sharer } from './callers.ts';

/** The most requests of all spend keys together. Of most shares, this leaves half to the others. */
const SPEND_KEYS_IN_PROGRESS_MAX = 1;

export class CallerGate {
  readonly #waitMsMax: number;
  readonly #all: AccountGate;
  readonly #keys: AccountGate;
  readonly #spendKeys: AccountGate;

  constructor(options: AccountGateOptions) {
    this.#waitMsMax = options.waitMsMax;
    this.#all = new AccountGate(options);
    this.#keys = new AccountGate(options);
    this.#spendKeys = new AccountGate({ ...options, weightMax: SPEND_KEYS_IN_PROGRESS_MAX });
  }

  /** Rejects with `rate_limited` when there is no room in time. */
  run<T>(
    caller: Sharer,
    work: () => Promise<T>,
    waitMs = atDifferentTimes(this.#waitMsMax),
  ): Promise<T> {
    const { accountId, keyId, spend } = caller;
    const untilMs = performance.now() + waitMs;
    const within = (gate: AccountGate, name: string, inner: () => Promise<T>) => () =>
      gate.run(name, 1, inner, Math.max(0, untilMs - performance.now()));
    const ofAll = within(this.#all, accountId, work);
    if (isSignedIn(caller)) return ofAll();
    const ofKeys = within(this.#keys, accountId, ofAll);
    if (!spend) return ofKeys();
    return within(this.#spendKeys, keyId, within(this.#spendKeys, accountId, ofKeys))();
  }
}
