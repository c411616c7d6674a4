/** Sends requests. All are retried, timed out and answered in the same way. Throws FareboxError. */
import { createError, errorOf, FareboxError } from './errors.js';
import { retry } from './retry.js';
import * as settings from './settings.js';
import { failureOf, Transport } from './transport.js';

const IDEMPOTENCY_KEY = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/;
const TIMEOUT_MS = 5_000;
/**
 * The service waits for the payment, at each attempt, before it answers that it is pending: up to a minute
 * (`TOP_UP_ANSWER_MS`).
 */
const PAY_MS = 65_000;
/** As long as the service asks for when it has started nothing. After a longer pause, a payment may no longer be wanted. */
const PAY_PAUSE_MS = 5_000;
/** The settings that every client has. */
export const CONNECTION = ['baseUrl', 'timeoutMs', 'maxRetries', 'fetch'];
/** What the client itself adds to the options of a call: `totalMs` and `pauseMsMax` of retry.js. */
export const LIMITS = Symbol('limits');
const OPTIONS = ['timeoutMs', 'signal'];
const JSON_TYPE = { 'Content-Type': 'application/json' };
const LAST_ARGUMENT =
  "a call's options, which are its last argument: an idempotencyKey belongs in the argument before it";
/** A read has no effect, so its outcome is never unknown. */
export const READ = { done: 'done' };

export class Calls {
  transport;
  timeoutMs;
  #url;
  #payMs;
  #maxRetries;

  constructor(key, options) {
    const { baseUrl, timeoutMs = TIMEOUT_MS, maxRetries = 2, fetch } = options;
    this.#url = settings.checkBaseUrl(baseUrl);
    this.transport = new Transport(this.#url, key, settings.checkFetch(fetch));
    this.timeoutMs = settings.checkInteger('timeoutMs', timeoutMs, 1);
    this.#payMs = Math.max(PAY_MS, this.timeoutMs);
    this.#maxRetries = settings.checkInteger('maxRetries', maxRetries, 0);
  }

  /**
   * Refuses a call whose caller sent no key, as the service would, but without a request: during an outage,
   * `run_unpaid` would make it free.
   */
  checkApiKey(apiKey) {
    if (typeof apiKey === 'string' && apiKey !== '') return;
    const message =
      "The consumer's key is missing, or the request carries more than one. Send it once, in the header X-Service-Key.";
    throw createError('invalid_api_key', message, {
      status: 401,
      type: 'authentication_error',
      param: 'apiKey',
      docUrl: `${this.#url}/docs/errors#invalid_api_key`,
      keysUrl: `${this.#url}/console/budgets`,
    });
  }

  /** Calls `attempt(limits)` of retry.js repeatedly, for as long as the call may take. */
  retry(attempt, options = {}) {
    checkCallOptions(options);
    const { timeoutMs = this.timeoutMs, signal, [LIMITS]: limits } = options;
    settings.checkInteger('timeoutMs', timeoutMs, 1);
    return retry(attempt, { timeoutMs, maxRetries: this.#maxRetries, signal, ...limits });
  }

  /** The options of a call that waits for a payment. */
  toPay(options = {}) {
    checkCallOptions(options);
    const { timeoutMs = this.#payMs, signal } = options;
    return { timeoutMs, signal, [LIMITS]: { pauseMsMax: PAY_PAUSE_MS } };
  }

  /** `isAnswer(json)`, if given, says whether a success is Farebox's: one in any other shape is somebody else's. */
  async get(path, query, options, isAnswer) {
    const search = new URLSearchParams(Object.entries(query ?? {}).filter(isGiven)).toString();
    return this.read({ path: search ? `${path}?${search}` : path, isAnswer }, options);
  }

  /** A request that changes nothing, of any method. */
  async read(asked, options) {
    return (await this.#ask(asked, READ, options)).json;
  }

  /**
   * A write that may be sent again, because its idempotency key or its nature makes it take effect once. `effect` has
   * the words for the error: `noun` when it may have happened, `done` when it did not. If money moves, `isDone(json)`
   * says whether a success tells of it. Resolves with `{ json, replayed }`.
   */
  async write(asked, effect, options) {
    const { idempotencyKey } = asked;
    if (idempotencyKey !== undefined) prepare(effect, () => checkIdempotencyKey(idempotencyKey));
    return this.#ask(asked, effect, options);
  }

  /**
   * A POST under the caller's idempotency key or a random one, so that it may be sent again. Resolves with
   * the body.
   */
  async post(path, { body, idempotencyKey = crypto.randomUUID() }, effect, options) {
    const asked = { method: 'POST', path, body, idempotencyKey };
    return (await this.write(asked, effect, options)).json;
  }

  /** A write that takes effect each time it arrives, so it is not sent again when it may have arrived. */
  async writeOnce(asked, effect, options) {
    return (await this.#ask({ ...asked, isSentOnce: true }, effect, options)).json;
  }

  async #ask(asked, effect, options) {
    const { method = 'GET', path, body, idempotencyKey, isSentOnce } = asked;
    const isAnswer = asked.isAnswer ?? effect.isDone ?? (() => true);
    const headers = {
      ...(body !== undefined && JSON_TYPE),
      ...(idempotencyKey !== undefined && { 'Idempotency-Key': idempotencyKey }),
    };
    const request = { method, headers, body: JSON.stringify(body), signal: options?.signal };
    const { answer, isUnknown } = await this.retry(async ({ timeoutMs }) => {
      const response = await this.transport.request(path, { ...request, timeoutMs });
      const { status, json, header } = response;
      const isSuccess = status >= 200 && status < 300 && typeof json === 'object' && json !== null;
      if (isSuccess && isAnswer(json)) {
        return { json, replayed: header('idempotency-replayed') === 'true' };
      }
      const failure = failureOf(response);
      return isSentOnce && failure.unknown ? { ...failure, retryable: false } : failure;
    }, options);
    if (answer.json) return answer;
    throw failed(answer, isUnknown, effect, idempotencyKey);
  }
}

export function checkCallOptions(options) {
  settings.checkOptions(LAST_ARGUMENT, options, OPTIONS);
}

/** The error of a call that did nothing, or whose outcome is unknown. */
export function failed(answer, isUnknown, effect, idempotencyKey) {
  const reason = answer.isAborted ? 'The call was aborted' : 'Farebox cannot be reached';
  if (effect === READ) return errorOf(answer, reason, { outcome: 'not_done' });
  const unavailable = isUnknown
    ? `Farebox gave no response, so the ${effect.noun} may have been made` +
      (idempotencyKey === undefined ? '' : '; call again with the same idempotencyKey to find out')
    : `${reason}; nothing was ${effect.done}`;
  const outcome = isUnknown ? 'unknown' : `not_${effect.done}`;
  const told = isUnknown && answer.refused ? withLost(answer, effect) : answer;
  return errorOf(told, unavailable, { outcome, idempotencyKey });
}

/** The refusal of a retry, for example by a key that was revoked meanwhile, says nothing about the earlier attempt. */
function withLost({ error, ...answer }, { noun }) {
  const { message = error.code } = error;
  const lost = `An earlier attempt got no response, so the ${noun} may have been made.`;
  return { ...answer, error: { ...error, message: `${message} ${lost}` } };
}

/** Gives what `make` makes of a request. What that throws was never sent, so nothing was done. */
export function prepare({ done }, make) {
  try {
    return make();
  } catch (error) {
    if (FareboxError.isInstance(error)) error.outcome = `not_${done}`;
    throw error;
  }
}

/** Refuses what a header cannot carry. The service checks everything else. */
export function checkIdempotencyKey(key, param = 'idempotencyKey') {
  if (typeof key === 'string' && IDEMPOTENCY_KEY.test(key)) return;
  const message =
    'An idempotency key is 1 to 255 printable ASCII characters, without spaces at either end.';
  throw createError('invalid_idempotency_key', message, { param });
}

/**
 * Checks that an answer has a result for each of the `count` parts of the request. One without all of them
 * counts as lost.
 */
export function hasResults(count, isResult) {
  return ({ results }) =>
    Array.isArray(results) && results.length === count && results.every(isResult);
}

/** Checks that an answer has an id. */
export function hasId({ id }) {
  return typeof id === 'string';
}

function isGiven([, value]) {
  return value !== undefined;
}
