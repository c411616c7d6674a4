/**
 * Runs a reconciliation now, in addition to the scheduled ones (schedules.ts). Both may safely run at the
 * same time.
 */
import type { reconcileTopUps as reconcileWorkflow } from '../../workflows/reconcile-top-ups.ts';
import type { Reconciliation } from '../../workflows/reconcile-top-ups.ts';
import type { TemporalClient } from './client.ts';
import { RECONCILED_WITHIN_SECONDS } from './schedules.ts';
import { runsOn } from './starts.ts';

/** Scoped by the task queue, so that in a shared namespace it never joins the run of another deployment. */
export function reconcileNowId({ taskQueue }: TemporalClient): string {
  return `${taskQueue}/reconcileTopUps/now`;
}

/** Starts a run or joins the current one, and resolves when it has ended. A worker does the work. */
export async function reconcileNow(
  temporal: TemporalClient,
  signal: AbortSignal,
): Promise<Reconciliation> {
  const { client } = temporal;
  return client.withAbortSignal(signal, () =>
    client.workflow.execute<typeof reconcileWorkflow>('reconcileTopUps', {
      workflowId: reconcileNowId(temporal),
      ...runsOn(temporal),
      args: [],
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowExecutionTimeout: RECONCILED_WITHIN_SECONDS * 1_000,
      staticSummary: 'Reconciliation, started by an operator',
    }),
  );
}
