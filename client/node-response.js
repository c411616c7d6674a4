/** What paid routes need of node's response. */

/** Aborted when the caller has gone before the response was finished. */
export function signalOf(response) {
  const caller = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) caller.abort();
  });
  return caller.signal;
}
