/** A reconciliation at once, beside the one that runs by the clock (schedules.ts): both may run, and do no harm. */
import type { reconcileTopUps as reconcileWorkflow } from '../../workflows/reconcile-top-ups.ts';
import type { Reconciliation } from '../../workflows/reconcile-top-ups.ts';
import type { TemporalClient } from './client.ts';

/** Starts one, or joins it, and answers when it has ended. A worker does the work. */
export async function reconcileNow(
  { client, taskQueue }: TemporalClient,
  signal: AbortSignal,
): Promise<Reconciliation> {
  return client.withAbortSignal(signal, () =>
    client.workflow.execute<typeof reconcileWorkflow>('reconcileTopUps', {
      workflowId: 'reconcileTopUps/now',
      taskQueue,
      args: [],
      workflowIdConflictPolicy: 'USE_EXISTING',
      staticSummary: 'Reconciliation, asked for by an operator',
    }),
  );
}
