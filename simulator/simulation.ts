/**
 * What the parts of the simulator share: the store, the webhooks, and the one way to change anything
 * (`run`: a transaction, after which the webhooks that it owes go out).
 */
import type { Context } from './context.ts';
import type { Store } from './store.ts';
import type { Webhooks } from './webhooks.ts';

export interface Simulation {
  readonly store: Store;
  readonly webhooks: Webhooks;
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
