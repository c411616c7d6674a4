/** Approvals: asks the owner of an account about a refused call, waits for the answer, and decides as the owner. */
import { checkCallOptions, hasId, LIMITS, prepare } from './calls.js';
import { createError } from './errors.js';
import { idInPath, listAt } from './list.js';
import { amountToSend } from './money.js';
import { pause } from './retry.js';
import { checkInteger, checkMembers, membersOf, TIMER_MS_MAX } from './settings.js';

const ASK = { noun: 'approval', done: 'done' };
const DECISION = { noun: 'decision', done: 'done' };
const ASKABLE = new Set(['approval_required', 'spend_limit_reached', 'insufficient_balance']);
const QUESTION = ['apiKey', 'developerId', 'tool', 'amount', 'reason', 'expiresIn'];
const WAIT_MS = 300_000;
/** The wait of one request; the service accepts up to 55. */
const WAIT_SECONDS = 30;
/** Between attempts while the service is away, unless it says how long to wait. */
const PAUSE_MS = 1_000;
/** Before a call that nothing refuses any more is sent again. */
const CAUGHT_UP_MS = 250;
/**
 * How long such a call is sent again. What refuses it then is nothing that an owner can lift, such as an
 * amount of the test mode.
 */
const CAUGHT_UP_MS_MAX = 5_000;

export class Approvals {
  #calls;

  constructor(calls) {
    this.#calls = calls;
  }

  /** The same question returns the same approval, so it may be sent again. */
  async ask(request, options) {
    const body = membersOf(request, QUESTION);
    body.amount = prepare(ASK, () => amountToSend(body.amount));
    const asked = { method: 'POST', path: '/v1/approvals', body };
    return (await this.#calls.write(asked, ASK, options)).json;
  }

  get(id, options) {
    return this.#calls.get(`/v1/approvals/${idInPath(id)}`, {}, options, hasId);
  }

  list(filter, options) {
    return listAt(
      this.#calls,
      '/v1/approvals',
      'approvals',
      filter,
      ['status', 'budgetId'],
      options,
    );
  }

  async decide(id, request, options) {
    const known = ['decision', 'limit', 'amount', 'idempotencyKey'];
    const { limit, amount, idempotencyKey, ...others } = membersOf(request, known);
    const body = prepare(DECISION, () => ({
      ...others,
      limit: amountToSend(limit, 'limit'),
      amount: amountToSend(amount),
    }));
    const path = `/v1/approvals/${idInPath(id)}/decide`;
    // Without a key of its own, a decision has that of its approval: sent again, also by another call of
    // this, it pays once.
    const asked = { method: 'POST', path, body, idempotencyKey };
    const own = body.decision === 'top_up' ? this.#calls.toPay(options) : options;
    return (await this.#calls.write(asked, DECISION, own)).json;
  }

  /** Until it is decided or the time is over. An outage of the service meanwhile only costs time. */
  async wait(id, options = {}) {
    checkCallOptions(options);
    const { timeoutMs = WAIT_MS, signal } = options;
    checkInteger('timeoutMs', timeoutMs, 1);
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const leftMs = deadline - performance.now();
      const wait = Math.max(0, Math.min(WAIT_SECONDS, Math.ceil(leftMs / 1_000)));
      const requestMs = Math.min(TIMER_MS_MAX, wait * 1_000 + this.#calls.timeoutMs);
      // A service that is silent may not take longer than one that answers.
      const totalMs = Math.max(0, leftMs) + this.#calls.timeoutMs;
      const limits = { timeoutMs: requestMs, signal, [LIMITS]: { totalMs } };
      try {
        const path = `/v1/approvals/${idInPath(id)}`;
        const approval = await this.#calls.get(path, { wait }, limits, hasId);
        if (approval.status !== 'pending' || leftMs <= 0) return approval;
      } catch (error) {
        const mayRecover = error.code === 'service_unavailable' || error.code === 'rate_limited';
        if (!mayRecover || performance.now() >= deadline) throw error;
        const mostMs = deadline - performance.now();
        await pause(Math.max(PAUSE_MS, Math.min(error.retryAfterMs ?? 0, mostMs)), signal);
      }
    }
  }
}

/** Gives the options of a question; `true` asks with the defaults. */
export function checkAsk(ask) {
  const given = ask === true ? {} : ask;
  checkMembers('ask', given, ['reason', 'expiresIn', 'timeoutMs']);
  const { reason, expiresIn, timeoutMs = WAIT_MS } = given;
  return { reason, expiresIn, timeoutMs: checkInteger('ask.timeoutMs', timeoutMs, 1) };
}

/**
 * Calls `charge` again after each refusal that the owner has lifted. Otherwise throws the refusal, with the
 * approval's id and status if there is one.
 */
export async function askAndRetry(approvals, ask, call, charge, { signal } = {}) {
  const { reason, expiresIn, timeoutMs } = checkAsk(ask);
  const deadline = performance.now() + timeoutMs;
  let previousId;
  let notNeededUntil;
  for (;;) {
    try {
      return await charge();
    } catch (error) {
      if (!ASKABLE.has(error.code)) throw error;
      const question = { ...amountOf(call, error), reason, expiresIn };
      const asked = await approvals
        .ask(question, { signal })
        .catch((failure) => noAnswer(failure, error));
      if (asked === NOT_NEEDED) {
        // Allowed a moment ago: each process that decides charges learns of it within a second.
        const now = performance.now();
        notNeededUntil ??= Math.min(deadline, now + CAUGHT_UP_MS_MAX);
        if (now >= notNeededUntil) throw error;
        await pause(CAUGHT_UP_MS, signal);
        continue;
      }
      // Approved a moment ago and refused all the same: somebody else used it.
      if (asked === undefined || asked.id === previousId) throw error;
      previousId = asked.id;
      notNeededUntil = undefined;
      const leftMs = Math.max(1, Math.ceil(deadline - performance.now()));
      const { id, status } = await approvals
        .wait(asked.id, { timeoutMs: leftMs, signal })
        .catch((failure) => stillAsked(failure, asked, error));
      if (status === 'approved') continue;
      throw Object.assign(error, { approvalId: id, approvalStatus: status });
    }
  }
}

/** An owner decides about an amount: of units, the one that was refused. */
function amountOf({ units, ...call }, { required }) {
  return units === undefined ? call : { ...call, amount: required };
}

const NOT_NEEDED = Symbol('nothing refuses the call any more');

/**
 * An outage during the wait does not undo the refusal: it must not look like one that the call may run
 * without paying.
 */
function stillAsked(failure, asked, refusal) {
  checkAborted(failure, refusal);
  return asked;
}

/** Whether the owner was asked is unknown then, but not what happened to the call: it was refused. */
function checkAborted({ code, cause }, { outcome, idempotencyKey }) {
  if (code !== 'aborted') return;
  const message = 'The call was refused, and aborted while the owner of the account was asked.';
  throw createError(code, message, { outcome, idempotencyKey }, cause);
}

/**
 * The refusal says more than why nobody could be asked, such as a reason that is too long, so that becomes
 * its cause.
 */
function noAnswer(failure, refusal) {
  if (failure.code === 'approval_not_needed') return NOT_NEEDED;
  checkAborted(failure, refusal);
  Object.defineProperty(refusal, 'cause', { value: failure, configurable: true });
  return undefined;
}
