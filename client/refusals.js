/** The response to the caller of a paid call that was not paid: over HTTP, and as text for a model. */
import { formatDollarNumber } from './money.js';

const TO_CALLER = new Set([
  'account_keys_closed',
  'insufficient_balance',
  'spend_limit_reached',
  'tool_not_allowed',
  'developer_not_allowed',
  'approval_required',
  'hold_closed',
  'invalid_api_key',
  'mode_mismatch',
  'service_unavailable',
  'rate_limited',
  'aborted',
  'call_timed_out',
]);

/** The types of errors that concern the caller, also with a code that this version does not know. */
const TYPES_TO_CALLER = new Set(['payment_error', 'rate_limit_error']);

/** Whether it is a mistake of the server's own, such as a wrong secret key. */
export function isOwnMistake({ code, type }) {
  return !TO_CALLER.has(code) && !TYPES_TO_CALLER.has(type);
}

/**
 * Returns `{ status, headers, error }`. Hides the server's own mistakes, such as a wrong secret key, from the caller,
 * and idempotency keys, which only the server can use. No status invites the caller to
 * repeat a call that may have been paid for.
 */
export function refusalOf(error) {
  const { outcome, requestId } = error;
  const isUnknown = outcome === 'unknown';
  if (isUnknown || isOwnMistake(error)) {
    const message = isUnknown
      ? 'The call may have been paid. The usage of the key shows whether it was; calling again may pay again.'
      : 'This call cannot be billed. Calling again will not help.';
    const facts = { code: 'billing_error', message, outcome, ...(requestId && { requestId }) };
    return { status: 500, headers: {}, error: facts };
  }
  const { name: _, cause: __, idempotencyKey: ___, ...facts } = error.toJSON();
  const isAway = error.code === 'service_unavailable' || error.code === 'aborted';
  return {
    status: isAway ? 503 : error.status,
    headers: waitHeaders(error),
    // The round trip removes undefined members.
    error: JSON.parse(JSON.stringify(facts)),
  };
}

function waitHeaders({ retryAfterMs }) {
  return retryAfterMs === undefined
    ? {}
    : { 'Retry-After': String(Math.ceil(retryAfterMs / 1_000)) };
}

/** For the model: what happened, how to fix it, and whether another call helps. */
export function explain(tool, error) {
  const { code, message, outcome, required, balance, topUpUrl, resetsAt } = error;
  const { raiseUrl, approvalUrl, keysUrl } = error;
  switch (code) {
    case 'spend_limit_reached':
      return (
        `${tool} did not run: ${message} ` +
        (resetsAt
          ? `It can be called again from ${resetsAt}, or when the user raises the limit${at(raiseUrl)}.`
          : `Ask the user to raise the limit${at(raiseUrl)}.`)
      );
    case 'approval_required':
      return `${tool} did not run: ${message} Ask the user to approve it${at(approvalUrl)}.`;
    case 'insufficient_balance':
      return (
        `Payment required: ${tool} costs ${formatDollarNumber(required)} and the balance is ` +
        `${formatDollarNumber(balance)}. ` +
        `Ask the user to top up at ${topUpUrl}. Calling again before that will fail.`
      );
    case 'invalid_api_key':
      return (
        `${tool} is a paid tool. The X-Service-Key header must carry a Farebox spend key of the user; ` +
        `it is missing or not valid.${keysUrl ? ` The user can make one at ${keysUrl}.` : ''} ` +
        'Calling again without it will fail.'
      );
    case 'account_keys_closed':
      return (
        `${tool} did not run: the user's account key cannot be charged. Ask the user for a spend key. ` +
        'Calling again with this key will fail.'
      );
    case 'mode_mismatch':
      return (
        `${tool} did not run: the tool and the user's Farebox key are of different modes, live and test. ` +
        'Calling again with this key will fail.'
      );
    case 'service_unavailable':
      if (outcome === 'not_held') {
        return `${tool} did not run: the billing service cannot be reached. Nothing was charged; try again later.`;
      }
      // It may have run, and done what a second call would do again.
      return (
        `${tool} gave no result: the billing service did not respond in time. ` +
        'Nothing was charged; try again later.'
      );
    default:
      return `${tool} gave no result: ${message}`;
  }
}

function at(url) {
  return url === undefined ? '' : ` at ${url}`;
}

/** The members of `_meta`: of a paid result, its charge; of a refusal, the error. */
export const CHARGE_META = 'farebox/charge';
export const ERROR_META = 'farebox/error';

/** The charge as headers; none when nothing was paid. */
export function chargeHeaders(charge) {
  return charge?.paid ? { 'X-Charge-Id': charge.id, 'X-Charge-Receipt': charge.receipt } : {};
}
