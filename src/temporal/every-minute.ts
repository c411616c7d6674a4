/** The loop for what a worker keeps in order at Temporal, beside its work, for as long as it runs. */
import type { TemporalClient } from './client.ts';
import { pause } from './pause.ts';

const AGAIN_MS = 60_000;
const RETRY_MS = 1_000;

/**
 * Repeats `work` every minute, and every second while it fails, until `signal` aborts, which also cuts off
 * its calls.
 */
export async function everyMinute(
  temporal: TemporalClient,
  signal: AbortSignal,
  work: () => Promise<void>,
  onFailure: (error: unknown) => void,
): Promise<void> {
  while (!signal.aborted) {
    let pauseMs = AGAIN_MS;
    // Temporal's client never removes its listeners from the signal of a call.
    const round = new AbortController();
    const end = () => round.abort();
    signal.addEventListener('abort', end);
    try {
      await temporal.client.withAbortSignal(round.signal, work);
    } catch (error) {
      if (signal.aborted) return;
      onFailure(error);
      pauseMs = RETRY_MS;
    } finally {
      signal.removeEventListener('abort', end);
    }
    await pause(pauseMs, signal);
  }
}
