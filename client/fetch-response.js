/** The part of fetch's Response, and of bodies that are streams, that paid routes need. */

/** Also when the response cannot be sent: it is a network error, or its body was read. */
export function hasFailed({ status, body, bodyUsed }) {
  return status === 0 || status >= 400 || bodyUsed || body?.locked === true;
}

/**
 * Whether it is a Response of this or another realm, which frameworks accept in place of a body. It has a
 * status of its own.
 */
export function isResponse(body) {
  return Object.prototype.toString.call(body) === '[object Response]';
}

/** The error of a handler that has returned no Response. */
export function noResponse() {
  return new TypeError('Farebox: the handler returned no Response; nothing was charged');
}

/** Whether somebody else has read the body or reads it, so that it cannot be sent. */
export function isSpent(body) {
  if (isResponse(body)) return body.bodyUsed || body.body?.locked === true;
  if (isNodeStream(body)) return body.destroyed === true || body.readableEnded === true;
  return isWebStream(body) && body.locked;
}

/**
 * Closes a body that is not sent, if it is a stream, of Node or of the web: it may hold a file or a
 * connection open. Any other object stays untouched: the `destroy()` of a database's record deletes it.
 */
export function discard(body) {
  if (isResponse(body)) discard(body.body);
  else if (isNodeStream(body)) body.destroy();
  // Somebody who reads it ends it.
  else if (isWebStream(body)) body.cancel().catch(() => {});
}

function isNodeStream(body) {
  return typeof body?.pipe === 'function' && typeof body.destroy === 'function';
}

function isWebStream(body) {
  return typeof body?.getReader === 'function';
}
