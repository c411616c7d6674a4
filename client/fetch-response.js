/** The part of fetch's Response, and of bodies that are streams, that paid routes need. */

/** Also when the response cannot be sent: it is a network error, or its body was read. */
export function hasFailed({ status, body, bodyUsed }) {
  return status === 0 || status >= 400 || bodyUsed || body?.locked === true;
}

/** Closes a body that is not sent, if it is a stream, of Node or of the web: it may hold a file or a connection open. */
export function discard(body) {
  if (typeof body?.destroy === 'function') body.destroy();
  // Somebody who reads it ends it.
  else if (typeof body?.cancel === 'function') body.cancel().catch(() => {});
}
