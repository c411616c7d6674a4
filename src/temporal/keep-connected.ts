/**
 * Replaces connections to Temporal that were forgotten, by a firewall for example, within about three seconds: it asks
 * on the open ones, and when one is silent and a new one is not, continues on new ones. While Temporal itself
 * is silent, it replaces nothing.
 */
import type { Logger } from 'pino';
import { answerWithin } from '../give-up-after.ts';
import { isUp, type TemporalClient } from './client.ts';
import type { WorkerConnection } from './connect-worker.ts';
import { pause } from './pause.ts';

const ASK_EVERY_MS = 1_000;
const ANSWER_MS = 2_000;
/** Longer, because the deadline of a call counts the time that this process stood still. */
const CALL_TIMEOUT_MS = 10_000;

/** Until `signal` aborts. `native` is that of a worker. */
export async function keepConnected(
  temporal: TemporalClient,
  log: Logger,
  signal: AbortSignal,
  native?: WorkerConnection,
): Promise<void> {
  while (!signal.aborted) {
    const cutSilent = native?.tunnel?.listen();
    const answers = await Promise.all([
      answerWithin(ANSWER_MS, temporal.isUp(CALL_TIMEOUT_MS)),
      native?.tunnel ? answerWithin(ANSWER_MS, isUp(native.connection, CALL_TIMEOUT_MS)) : true,
    ]);
    const isSilent = answers.some((isAnswered) => isAnswered !== true);
    if (isSilent && !signal.aborted && (await temporal.renew())) {
      cutSilent?.();
      log.warn('Temporal did not answer; continuing on new connections');
    }
    await pause(ASK_EVERY_MS, signal);
  }
}
