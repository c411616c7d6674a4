/** The actions of an operator on a workflow of any type in the Temporal UI. */
import { randomUUID } from 'node:crypto';
import { WorkflowNotFoundError, type WorkflowHandle } from '@temporalio/client';
import type { TemporalClient } from '../../src/temporal/client.ts';
import { until } from './stack.ts';

export const INTERVENTIONS = [
  'terminate',
  'cancel',
  'reset to the first task',
  'reset to the last task',
  'signal',
] as const;
export type Intervention = (typeof INTERVENTIONS)[number];

/** A workflow that has ended can only be reset. `signal`: the one that the type accepts. */
export async function intervene(
  temporal: TemporalClient,
  handle: WorkflowHandle,
  intervention: Intervention,
  signal: string,
): Promise<void> {
  if (intervention.startsWith('reset')) {
    const { runId } = await handle.describe();
    // This run, not the next one, which a report may start meanwhile. A run that has just begun has no task yet.
    const run = temporal.client.workflow.getHandle(handle.workflowId, runId);
    const task = await until(async () => {
      const { events } = await run.fetchHistory();
      const tasks = (events ?? []).filter((event) => event.workflowTaskCompletedEventAttributes);
      return tasks.at(intervention.includes('first') ? 0 : -1);
    });
    await temporal.client.workflowService.resetWorkflowExecution({
      namespace: temporal.client.options.namespace,
      workflowExecution: { workflowId: handle.workflowId, runId },
      reason: intervention,
      requestId: randomUUID(),
      workflowTaskFinishEventId: task.eventId ?? null,
    });
    return;
  }
  await act(handle, intervention, signal).catch((error: unknown) => {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  });
}

async function act(handle: WorkflowHandle, intervention: Intervention, signal: string) {
  if (intervention === 'terminate') await handle.terminate();
  if (intervention === 'cancel') await handle.cancel();
  if (intervention === 'signal') await handle.signal(signal);
}
