/** Refusals in place of a response of Fastify. */
import { refuse as refuseRaw } from './node-payment.js';
import { refusalOf } from './refusals.js';

/** Gives the body. Takes back the headers that were not there `before`: the handler has set them for its own body. */
export function refuse(reply, error, before) {
  for (const name of Object.keys(reply.getHeaders())) {
    if (name in before) continue;
    reply.removeHeader(name);
    reply.raw.removeHeader(name);
  }
  const { status, error: facts } = refusalOf(error);
  reply.code(status).type('application/json').removeHeader('content-length');
  return JSON.stringify({ error: facts });
}

/** Fastify's error handlers do not see a reply that its handler has hijacked. */
export function failHijacked(request, reply, error) {
  request.log.error(error);
  refuseRaw(reply.raw, error);
}
