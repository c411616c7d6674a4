/**
 * Charges on the wire (specification section 4.3): one in a request, or many in one request, each decided and answered
 * on its own. Either way, a charge has the same idempotency key and the same meaning, so attempts in a batch and alone
 * are attempts of the same charge.
 */
import { amountToSend } from './money.js';
import { checkMembers } from './settings.js';
import { failureOf } from './transport.js';
import { unitsToSend } from './units.js';

export const CHARGED = [
  'apiKey',
  'tool',
  'amount',
  'units',
  'metadata',
  'idempotencyKey',
  'onUnavailable',
  'ask',
];
const JSON_TYPE = { 'Content-Type': 'application/json' };

/**
 * Prepares a charge for sending: `member` is its JSON in a batch. Values that JSON cannot carry throw here, in the call
 * to which they belong.
 */
export function prepareCharge(request, idempotencyKey) {
  checkMembers('a charge', request, CHARGED);
  const { apiKey, tool, metadata } = request;
  const amount = amountToSend(request.amount);
  const units = unitsToSend(request.units);
  const member = JSON.stringify({ apiKey, tool, amount, units, metadata, idempotencyKey });
  return { idempotencyKey, member };
}

/** The same JSON without the idempotency key, which is its last member. */
function bodyOf(member) {
  return `${member.slice(0, member.lastIndexOf(',"idempotencyKey":'))}}`;
}

/** Resolves with `{ charge }`, or a failure of transport.js. */
export async function postCharge(transport, { member, idempotencyKey }, timeoutMs, signal) {
  const headers = { ...JSON_TYPE, 'Idempotency-Key': idempotencyKey };
  const options = { method: 'POST', headers, body: bodyOf(member), timeoutMs, signal };
  const response = await transport.request('/v1/charges', options);
  return answerOf(response, response.header?.('idempotency-replayed') === 'true');
}

/**
 * Resolves with the answer to each charge, in order. Without an answer to the request, the outcome of each is unknown.
 */
export async function postCharges(transport, charges, timeoutMs) {
  if (charges.length === 1) return [await postCharge(transport, charges[0], timeoutMs)];
  const body = `{"charges":[${charges.map(({ member }) => member).join()}]}`;
  const options = { method: 'POST', headers: JSON_TYPE, body, timeoutMs };
  const response = await transport.request('/v1/charges/batch', options);
  const results = response.status === 200 ? response.json?.results : undefined;
  if (!Array.isArray(results) || results.length !== charges.length) {
    return charges.map(() => failureOf(response));
  }
  return results.map((result) => {
    const { status, replayed, ...json } = Object(result);
    return answerOf({ status, json }, replayed === true);
  });
}

function answerOf(response, replayed) {
  const { status, json } = response;
  const isMade = status >= 200 && status < 300;
  if (isMade && isCharge(json)) {
    json.replayed = replayed;
    json.paid = true;
    return { charge: json };
  }
  return failureOf(response);
}

/** A success in any other shape is somebody else's, such as a proxy's. */
export function isCharge(json) {
  return typeof json?.receipt === 'string' && typeof json.id === 'string';
}
