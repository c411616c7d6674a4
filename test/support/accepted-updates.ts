/** How many updates a workflow's run has accepted. Temporal takes no more than 2,000, also none of operators. */
import type { WorkflowHandle } from '@temporalio/client';

export async function acceptedUpdates(workflow: WorkflowHandle): Promise<number> {
  const { events } = await workflow.fetchHistory();
  return (events ?? []).filter(
    (event) => event.workflowExecutionUpdateAcceptedEventAttributes != null,
  ).length;
}
