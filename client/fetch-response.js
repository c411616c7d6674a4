/** The part of fetch's Response that paid routes need. */

/** Also when the response cannot be sent: it is a network error, or its body was read. */
export function hasFailed({ status, body, bodyUsed }) {
  return status === 0 || status >= 400 || bodyUsed || body?.locked === true;
}
