/**
 * A paid call: hold the price, run, capture the cost. A failed call releases the hold, so the caller never pays for it.
 * If the release is lost, the hold expires.
 */
import { askAndRetry, checkAsk } from './approvals.js';
import { createError, FareboxError } from './errors.js';
import { usd } from './money.js';
import { isOwnMistake } from './refusals.js';
import {
  checkInteger,
  checkMembers,
  checkOnUnavailable,
  checkPrice,
  membersOf,
} from './settings.js';
import { looksUp } from './transport.js';
import { isNoUnits } from './units.js';
import { warn } from './warning.js';

const OPTIONS = [
  'tool',
  'price',
  'max',
  'settle',
  'timeoutMs',
  'onUnavailable',
  'ask',
  'hasOutputSchema',
];
const TIMEOUT_MS = 300_000;
/** How much longer than its call a hold lives, so that the capture finds it. */
const HOLD_MARGIN_SECONDS = 60;
/** A hold lasts at most a day. */
const TIMEOUT_MS_MAX = (86_400 - HOLD_MARGIN_SECONDS) * 1_000;
const NO_ANSWER = 'Farebox did not respond in time; nothing was charged.';
/** By its owner, who revoked the key, or because its time was over. */
const HOLD_CLOSED = 'The hold of this call was released or has expired; nothing was charged.';
/** A lost release only delays the return of the money until the hold expires. */
const RELEASE = { timeoutMs: 1_000 };

/** Refuses what could not work, when the tool or route is created. */
export function checkPaid(options = {}) {
  checkMembers('the options of a paid call', options, OPTIONS);
  const { tool, price, max, settle } = options;
  if (typeof tool !== 'string' || tool === '') {
    throw new TypeError('Farebox: a paid call needs the name of its tool: { tool, price }');
  }
  const { timeoutMs = TIMEOUT_MS, onUnavailable = 'fail', ask } = options;
  const isSettled = max !== undefined;
  if ((price === undefined) !== isSettled || (isSettled && typeof settle !== 'function')) {
    throw new TypeError('Farebox: a paid call needs a price, or max and settle');
  }
  if (typeof price !== 'function') checkCost(tool, isSettled ? max : price);
  checkInteger('timeoutMs', timeoutMs, 1, TIMEOUT_MS_MAX);
  checkOnUnavailable(onUnavailable);
  if (ask) checkAsk(ask);
}

function checkCost(tool, cost) {
  const { amount, units } = partsOf(cost);
  if (units === undefined) return checkPrice(tool, amount);
  if (countsSomething(units)) return;
  throw new RangeError(`Farebox: the units of "${tool}" must be whole numbers, not all of them 0`);
}

function countsSomething(units) {
  try {
    return !isNoUnits(units);
  } catch {
    return false;
  }
}

/** A cost is an amount of dollars, or `{ units }` of the tool's rate card. */
function partsOf(cost) {
  return cost?.units === undefined ? { amount: cost } : { units: cost.units };
}

/** Only for functions that take the handler as an argument: middleware runs before it. */
export function checkHandler(handler) {
  if (typeof handler === 'function') return;
  throw new TypeError(
    'Farebox: the third argument must be the handler: (farebox, options, handler)',
  );
}

/**
 * Holds the price, or the most that the call may cost. If it throws FareboxError, the call must not run. A `price`
 * function may take `timeoutMs`, before the time of the call begins.
 */
export function openPayment(farebox, options, call) {
  return telling(farebox, options, () => open(farebox, options, call));
}

async function open(farebox, options, { apiKey, input, signal }) {
  const { tool, price, max, ask, timeoutMs = TIMEOUT_MS } = options;
  const onUnavailable = options.onUnavailable ?? farebox.onUnavailable;
  const compute = () => own(() => price(...input));
  const most =
    typeof price === 'function' ? await inTime(compute, options, signal) : (price ?? max);
  if (typeof price === 'function' && isNothing('price()', most)) return unpaid();
  const expiresIn = Math.ceil(timeoutMs / 1_000) + HOLD_MARGIN_SECONDS;
  const call = { apiKey, tool, ...partsOf(most) };
  const request = { ...call, expiresIn, idempotencyKey: crypto.randomUUID() };
  const place = () => farebox.holds.place(request, { signal });
  try {
    const hold = ask
      ? await askAndRetry(farebox.approvals, ask, call, place, { signal })
      : await place();
    const paid = { ...membersOf(options, OPTIONS), onUnavailable };
    return new Payment(farebox, paid, hold, call.units, signal);
  } catch (error) {
    if (isFree(error)) return unpaid();
    const isLost = error.outcome === 'unknown';
    if (isLost) void giveUp(farebox, request);
    const told = isLost ? uncaptured(error) : error;
    if (!mayRunUnpaid(onUnavailable, told)) throw told;
    tell(farebox, tool, told);
    return unpaid({ paid: false, code: told.code, error: told });
  }
}

/** The payment of a call for which nothing is held. */
function unpaid(charge) {
  return { settle: async () => charge, release: async () => {} };
}

/** Finds, with the same key, a hold whose answer was lost or not waited for, and releases it. */
async function giveUp(farebox, request) {
  await farebox.holds
    .place(request, RELEASE)
    .then(({ id }) => farebox.holds.release({ holdId: id }, RELEASE))
    .catch(() => {});
}

const READ_BY_SETTLE =
  'Farebox: settle() read the body of the response, so the body can no longer be sent; nothing was charged. ' +
  'Read a copy of a fetch response, as in await response.clone().json(), or put what the cost depends on in a header';

/** If the answer to a hold is lost, the hold is never captured, so the caller is not charged. */
function uncaptured(error) {
  const { code } = error;
  const message = code === 'service_unavailable' ? NO_ANSWER : error.message;
  return createError(code, message, { ...error, outcome: 'not_charged' }, error);
}

class Payment {
  #farebox;
  #options;
  #hold;
  #units;
  #signal;
  #deadline;
  #isReleased = false;

  /** `units` are what the hold is for, if it is for units. */
  constructor(farebox, options, hold, units, signal) {
    this.#farebox = farebox;
    this.#options = options;
    this.#hold = hold;
    this.#units = units;
    this.#signal = signal;
    this.#deadline = performance.now() + (options.timeoutMs ?? TIMEOUT_MS);
  }

  /**
   * Captures the cost of the result, at most the held amount. Releases the hold if the cost is 0. The caller's
   * `settle` has the time that the call has left.
   * `hasFailed(result)` is true if `settle` has read the body: such a response can no longer be sent.
   * Refunds the charge if the caller left during the capture: nobody receives the result.
   */
  async settle(result, hasFailed) {
    const settle = () => this.#settle(result, hasFailed);
    const charge = await telling(this.#farebox, this.#options, settle);
    if (!charge?.paid || !this.#signal?.aborted) return charge;
    await refundUnsent(this.#farebox, charge);
    throw givenUp();
  }

  async #settle(result, hasFailed) {
    const { tool, settle, onUnavailable } = this.#options;
    try {
      const cost = settle && (await this.#costOf(result));
      // The caller has left. That release may have been lost, so a capture could still succeed.
      if (this.#isReleased) throw givenUp();
      if (settle && hasFailed?.(result)) throw new TypeError(READ_BY_SETTLE);
      if (settle && isNothing('settle()', cost)) return await this.release();
      // Units are captured as units, so that the receipt has the version of their rate card.
      const captured = settle ? partsOf(cost) : { units: this.#units };
      return { paid: true, ...(await this.#capture(captured)) };
    } catch (error) {
      await this.release();
      if (isFree(error)) return undefined;
      if (!mayRunUnpaid(onUnavailable, error)) throw error;
      tell(this.#farebox, tool, error);
      return { paid: false, code: error.code, error };
    }
  }

  #costOf(result) {
    const leftMs = Math.max(0, this.#deadline - performance.now());
    const compute = () => own(() => this.#options.settle(result));
    return inTime(compute, this.#options, undefined, leftMs);
  }

  async release() {
    await this.#giveBack();
  }

  /** Resolves with the released hold, or with undefined if there was no such response. */
  #giveBack() {
    this.#isReleased = true;
    return this.#farebox.holds.release({ holdId: this.#hold.id }, RELEASE).catch(() => {});
  }

  async #capture(cost) {
    const holdId = this.#hold.id;
    const request = { holdId, ...cost, over: 'cap', idempotencyKey: crypto.randomUUID() };
    try {
      return await this.#farebox.holds.capture(request);
    } catch (error) {
      if (error.code === 'hold_closed') throw createError(error.code, HOLD_CLOSED, error, error);
      if (error.outcome !== 'unknown') throw error;
      // Either the capture or this release is final.
      const { status, captured } = (await this.#giveBack()) ?? {};
      if (status === 'released' && captured === 0) throw freed(error);
      // A retry with the same key gives the charge or the refusal.
      return this.#farebox.holds.capture(request).catch((last) => {
        if (last.code === 'hold_closed') throw freed(error);
        throw Object.assign(unlessDecided(last), { holdId });
      });
    }
  }
}

/** The hold was released before the capture could take anything. */
function freed(lost) {
  return createError('service_unavailable', NO_ANSWER, { status: 503 }, lost);
}

/** Returns the money of a charge whose result cannot be sent. If that fails, the charge stays. */
export async function refundUnsent(farebox, charge) {
  if (!charge?.paid) return;
  const chargeId = charge.id;
  await farebox
    .refund({ chargeId }, { timeoutMs: 1_000 })
    .catch((error) => tell(farebox, charge.tool, Object.assign(error, { chargeId })));
}

/** Tells the developer of a refusal that the caller cannot act upon. */
async function telling(farebox, { tool }, run) {
  try {
    return await run();
  } catch (error) {
    const isTold = isRefusal(error) && (error.outcome === 'unknown' || isOwnMistake(error));
    if (isTold) tell(farebox, tool, error);
    throw error;
  }
}

/** What `onError` does must not change the call. */
function tell(farebox, tool, error) {
  const told = async () => farebox.onError(error, { tool });
  told().catch((failure) => warn(`onError failed: ${failure?.stack ?? String(failure)}`));
}

/**
 * A refusal that comes before the key is looked up, such as that of a revoked secret key, does not tell of
 * the capture.
 */
function unlessDecided(error) {
  return looksUp(error) ? error : Object.assign(error, { outcome: 'unknown' });
}

/** Runs a call between hold and capture. Resolves with `{ result, charge }`, without a charge when the call failed. */
export async function runPaid(farebox, options, { apiKey, input, signal, run, hasFailed }) {
  const payment = await openPayment(farebox, options, { apiKey, input, signal });
  let result;
  let failed;
  try {
    result = await inTime(() => own(run), options, signal);
    failed = hasFailed(result);
  } catch (error) {
    await payment.release();
    throw error;
  }
  if (failed) {
    await payment.release();
    return { result };
  }
  return { result, charge: await settleFor(signal, payment, result, hasFailed) };
}

/** A caller who leaves during this gets no result. */
async function settleFor(signal, payment, result, hasFailed) {
  const leave = () => void payment.release();
  signal?.addEventListener('abort', leave);
  try {
    return await payment.settle(result, hasFailed);
  } finally {
    signal?.removeEventListener('abort', leave);
  }
}

/**
 * What the tool's own code threw. A FareboxError tells of a payment that the tool made, with its balance and
 * top-up page.
 */
const ownErrors = new WeakSet();

/** Runs code of the tool. */
async function own(run) {
  try {
    return await run();
  } catch (error) {
    if (FareboxError.isInstance(error)) ownErrors.add(error);
    throw error;
  }
}

/** Whether it is a refusal or an outage of Farebox. Any other error is the tool's own. */
export function isRefusal(error) {
  return FareboxError.isInstance(error) && !ownErrors.has(error);
}

function mayRunUnpaid(onUnavailable, error) {
  return onUnavailable === 'run_unpaid' && isRefusal(error) && error.code === 'service_unavailable';
}

/**
 * Throws when it is no amount: a hold without one would have the price with which the tool is registered, and a
 * capture would take all that is held.
 */
function isNothing(name, cost) {
  const { amount, units } = partsOf(cost);
  try {
    return units === undefined ? Number(usd(amount).toString()) === 0 : isNoUnits(units);
  } catch (error) {
    throw notAnAmount(name, cost, error);
  }
}

/** Whether it refuses units only because their cost is 0: the rate card, which the client does not know, says so. */
function isFree(error) {
  return isRefusal(error) && error.code === 'invalid_amount' && error.required === 0;
}

/** With the cause, because not every value can be shown: `usd()` has no decimal form before it is rounded. */
function notAnAmount(name, amount, cause) {
  const why = cause?.message ?? String(amount);
  const message = `${name} returned no amount or units that can be charged (${why}); nothing was charged.`;
  return createError('invalid_amount', message, { param: 'amount' }, cause);
}

/** Calls `giveUp(error)` when the call takes too long, after `leftMs`. Returns a function that cancels this. */
export function limitTime({ timeoutMs = TIMEOUT_MS }, giveUp, leftMs = timeoutMs) {
  const timer = setTimeout(() => {
    const message = `The call took more than ${timeoutMs} ms; nothing was charged.`;
    giveUp(createError('call_timed_out', message, { status: 504 }));
  }, leftMs);
  return () => clearTimeout(timer);
}

function givenUp() {
  return createError('aborted', 'The caller gave up; nothing was charged.');
}

async function inTime(run, options, signal, leftMs) {
  let stopTimer;
  let abort;
  const ended = new Promise((_, reject) => {
    abort = () => reject(givenUp());
    stopTimer = limitTime(options, reject, leftMs);
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) abort();
  });
  try {
    return await Promise.race([run(), ended]);
  } finally {
    stopTimer();
    signal?.removeEventListener('abort', abort);
  }
}
