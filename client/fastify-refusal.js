/** Responses of Fastify that are not paid for, and refusals in their place. */
import { discard, hasFailed, isResponse, isSpent } from './fetch-response.js';
import { refuse as refuseRaw } from './node-payment.js';
import { hasFailedStatus, isHeaderValue, isReadToEnd } from './node-response.js';
import { isRefusal, refundUnsent } from './paid.js';
import { chargeHeaders, refusalOf } from './refusals.js';

/**
 * Gives the body. Takes back the headers that were not there `before`: the handler has set them for its
 * `unsent` body. Throws an error of the server's own.
 */
export function refuse(reply, error, before, unsent) {
  discard(unsent);
  if (!isRefusal(error)) throw error;
  for (const name of Object.keys(reply.getHeaders())) {
    if (name in before) continue;
    reply.removeHeader(name);
    reply.raw.removeHeader(name);
  }
  const { status, headers, error: facts } = refusalOf(error);
  reply.code(status).headers(headers).type('application/json').removeHeader('content-length');
  return JSON.stringify({ error: facts });
}

/**
 * Fastify's error handlers do not see a reply that its handler has hijacked. Throws the error if headers were
 * sent.
 */
export function failHijacked(request, reply, error) {
  request.log.error(error);
  if (reply.raw.headersSent) throw error;
  // Without `error`: here even a FareboxError is the server's own.
  refuseRaw(reply.raw, {});
}

/** Pays for the answer, or gives the price back. Returns what to send. */
export async function decide(call, reply, payload) {
  const { payment, kept, before, error } = call;
  kept.handBack();
  if (error || cannotBePaid(reply, payload)) {
    await payment.release();
    // A handler that answers too late: its answer is not sent.
    return error ? refuse(reply, error, before, payload) : payload;
  }
  try {
    call.charge = await payment.settle(payload, () => cannotBePaid(reply, payload));
    reply.headers(chargeHeaders(call.charge));
    return payload;
  } catch (failure) {
    return refuse(reply, failure, before, payload);
  }
}

/** It failed, or cannot be sent. Fastify takes the status of a fetch response only when it sends it. */
function cannotBePaid(reply, payload) {
  if (hasFailedStatus(reply.raw) || !Object.values(reply.getHeaders()).every(isHeaderValue))
    return true;
  if (isResponse(payload)) return hasFailed(payload);
  return !isSendable(payload) || isSpent(payload) || isReadToEnd(payload);
}

/** What Fastify sends besides a fetch response, and throws for anything else. */
function isSendable(payload) {
  if (payload === undefined || payload === null || typeof payload === 'string') return true;
  if (Buffer.isBuffer(payload)) return true;
  return typeof payload.pipe === 'function' || typeof payload.getReader === 'function';
}

/** Fastify could not send what was paid for. If it answers an error instead, takes back the charge and its headers. */
export async function undo(farebox, reply, charge, payload) {
  if (!hasFailedStatus(reply.raw)) return payload;
  for (const name of Object.keys(chargeHeaders(charge))) {
    reply.removeHeader(name);
    reply.raw.removeHeader(name);
  }
  await refundUnsent(farebox, charge);
  return payload;
}

/** Fastify ignores the handler's answer that comes later, and leaves it open if it is a stream. */
export function refuseAtOnce(reply, error, before) {
  const { send } = reply;
  reply.send(refuse(reply, error, before));
  reply.send = (late) => {
    if (reply.sent) discard(late);
    return send.call(reply, late);
  };
}
