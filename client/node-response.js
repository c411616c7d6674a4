/** The part of Node's response that paid routes need. */

/** Aborted when the caller disconnects before the response is finished. */
export function signalOf(response) {
  const caller = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) caller.abort();
  });
  return caller.signal;
}
