/** A reconciliation at once, beside the one that runs by the clock (schedules.ts): both may run, and do no harm. */
import type { reconcileTopUps as reconcileWorkflow } from '../../workflows/reconcile-top-ups.ts';
import type { Reconciliation } from '../../workflows/reconcile-top-ups.ts';
import type { TemporalClient } from './client.ts';
import { RECONCILED_WITHIN_SECONDS } from './schedules.ts';

/** Scoped by the task queue: in a namespace that others share, it never joins a run over other books. */
export function reconcileNowId({ taskQueue }: TemporalClient): string {
  return `${taskQueue}/reconcileTopUps/now`;
}

/** Starts one, or joins it, and answers when it has ended. A worker does the work. */
export async function reconcileNow(
  temporal: TemporalClient,
  signal: AbortSignal,
): Promise<Reconciliation> {
  const { client, taskQueue } = temporal;
  return client.withAbortSignal(signal, () =>
    client.workflow.execute<typeof reconcileWorkflow>('reconcileTopUps', {
      workflowId: reconcileNowId(temporal),
      taskQueue,
      args: [],
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowExecutionTimeout: RECONCILED_WITHIN_SECONDS * 1_000,
      staticSummary: 'Reconciliation, asked for by an operator',
    }),
  );
}
