/** One settlement of a lease, and what its answer means for each call. */
import { FareboxError } from './errors.js';
import { dollarsOf } from './lease-slice.js';
import { warn } from './warning.js';

/**
 * The results of a batch, one for each call; undefined when `send` gave up. A request that is refused as a whole, for
 * its size or as malformed, is sent in halves: if that is because of one call, only this call is refused.
 */
export async function resultsOf(send, batch) {
  try {
    return await send(batch);
  } catch (error) {
    if (!isAboutCalls(error)) throw error;
    if (!isMalformed(error) || batch.length <= 1) return batch.map(() => ({ error }));
    const half = Math.ceil(batch.length / 2);
    const first = await resultsOf(send, batch.slice(0, half));
    const second = first && (await resultsOf(send, batch.slice(half)));
    return second && [...first, ...second];
  }
}

/** Not about the credentials, the environment or the connection: with others, the calls may still be settled. */
export function isAboutCalls(error) {
  return !isUnavailable(error) && (isMalformed(error) || error.code === 'lease_fenced');
}

/** Something in the request, or its size. */
function isMalformed(error) {
  return error.status === 400 || error.status === 413;
}

/** No answer, or none that decided anything. */
export function isUnavailable(error) {
  if (!FareboxError.isInstance(error)) return true;
  const { code, outcome } = error;
  return code === 'service_unavailable' || code === 'rate_limited' || outcome === 'unknown';
}

/** As a settlement takes it. */
export function wireEntry({ sequence, tool, micros, metadata }) {
  return { sequence, tool, amount: dollarsOf(micros), metadata };
}

/** What `onSettled` gets. */
export function settledCall(leaseId, sequence, result) {
  if (result.status === 201) {
    const { id, receipt, tool, amount, createdAt } = result;
    return { paid: true, leaseId, sequence, id, receipt, tool, amount, createdAt };
  }
  const { code, message } = result.error;
  return { paid: false, leaseId, sequence, code, message };
}

/** The calls are settled. An error that nobody handles would end the process, and with it the calls that are not. */
export function warnOfSettled(error) {
  warn(`onSettled of farebox.lease() failed: ${error?.stack ?? String(error)}`);
}
