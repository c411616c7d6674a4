/** Workflows that cannot continue because their code fails, which sets no attribute of ours. */
import type { TemporalClient } from './client.ts';

/** Temporal sets the attribute after five failed tasks in a row, and removes it when a task succeeds. */
const FAILING_WORKFLOWS = 'TemporalReportedProblems IS NOT NULL';

const LISTED_MAX = 1_000;

/** Ids of this deployment's workflows, `LISTED_MAX` of them at most. */
export async function listFailingWorkflows({
  client,
  taskQueue,
}: TemporalClient): Promise<readonly string[]> {
  const query = `${FAILING_WORKFLOWS} and ExecutionStatus = "Running" and TaskQueue = "${taskQueue}"`;
  const ids: string[] = [];
  for await (const { workflowId } of client.workflow.list({ query })) {
    ids.push(workflowId);
    if (ids.length === LISTED_MAX) break;
  }
  return ids;
}
