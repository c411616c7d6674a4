/**
 * Replaces connections to Temporal that were forgotten, by a firewall for example, within about three seconds: it asks
 * on the open ones, and when one is silent and a new one is not, continues on new ones. While Temporal itself
 * is silent, it replaces nothing.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { NativeConnection } from '@temporalio/worker';
import type { Logger } from 'pino';
import { isUp, type TemporalClient } from './client.ts';
import type { WorkerConnection } from './connect-worker.ts';
import { pause } from './pause.ts';

const ASK_EVERY_MS = 1_000;
const ANSWER_MS = 2_000;

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
      temporal.isUp(ANSWER_MS),
      native?.tunnel ? isAnswered(native.connection) : true,
    ]);
    if (answers.includes(false) && !signal.aborted && (await temporal.renew())) {
      cutSilent?.();
      log.warn('Temporal did not answer; continuing on new connections');
    }
    await pause(ASK_EVERY_MS, signal);
  }
}

function isAnswered(connection: NativeConnection): Promise<boolean> {
  // The deadline is that of one attempt, and the SDK makes several.
  return Promise.race([isUp(connection, ANSWER_MS), delay(ANSWER_MS, false, { ref: false })]);
}
