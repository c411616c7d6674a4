/**
 * Shared by the parts of the simulator: the store, the webhooks, and `run`, the only way to change anything: a
 * transaction, after which its webhooks are sent.
 */
import type { Context } from './context.ts';
import type { RateLimit } from './http/rate-limit.ts';
import type { Kind, Kinds, Store } from './store.ts';
import type { Webhooks } from './webhooks.ts';

export interface Simulation {
  readonly store: Store;
  readonly webhooks: Webhooks;
  readonly rateLimit: RateLimit;
  readonly secretKey: string;
  readonly settleAfterSeconds: number;
  baseUrl: string;
}

export function run<T>(
  simulation: Simulation,
  request: Context['request'],
  work: (context: Context) => T,
): T {
  const { store, webhooks, baseUrl, settleAfterSeconds } = simulation;
  const now = Math.floor(Date.now() / 1_000);
  const result = store.transaction(() =>
    work({ store, baseUrl, now, settleAfterSeconds, request }),
  );
  webhooks.pump();
  return result;
}

/**
 * Runs `work` for each due object, in transactions of their own. An object that it fails for is reported and no longer
 * due, so that it stops neither the others nor the process.
 */
export function runDue<K extends Kind>(
  simulation: Simulation,
  kind: K,
  work: (context: Context, object: Kinds[K]) => void,
): void {
  const { store } = simulation;
  for (const object of store.due(kind, Math.floor(Date.now() / 1_000))) {
    const { id } = object;
    try {
      run(simulation, null, (context) => work(context, object));
    } catch (error) {
      process.stderr.write(
        `simulator: ${id}: ${error instanceof Error ? error.stack : String(error)}\n`,
      );
      store.forgetDue(id);
    }
  }
}
