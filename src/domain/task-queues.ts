/**
 * The task queues of a deployment, and the ids of its workflows. Workflows and steps that need only Postgres
 * use the queue that the setting names. Steps that call others have separate queues, so that nothing waits
 * behind a party that hangs.
 */

export const DEFAULT_TASK_QUEUE = 'farebox';

/**
 * `top-up/tu_...` in the default deployment, `<queue>/top-up/tu_...` in any other. Deployments that share a
 * namespace may have rows with the same ids, such as staging with a copy of production's database, and must
 * not share their workflows.
 */
export function workflowIdIn(
  { taskQueue }: { readonly taskQueue: string },
  kind: string,
  subjectId: string,
): string {
  const id = `${kind}/${subjectId}`;
  return taskQueue === DEFAULT_TASK_QUEUE ? id : `${taskQueue}/${id}`;
}

/** For calls of agents. */
export function agentTaskQueue(taskQueue: string): string {
  return `${taskQueue}-agents`;
}

/** For calls of agents beyond their account's share, which wait there without delaying other accounts. */
export function busyAgentTaskQueue(taskQueue: string): string {
  return `${taskQueue}-agents-busy`;
}

/** For calls of webhook endpoints. */
export function webhookTaskQueue(taskQueue: string): string {
  return `${taskQueue}-webhooks`;
}

/** For mails. */
export function mailTaskQueue(taskQueue: string): string {
  return `${taskQueue}-mail`;
}

/** For steps that call Stripe. Temporal limits how many of them start per second, over all workers. */
export function stripeTaskQueue(taskQueue: string): string {
  return `${taskQueue}-stripe`;
}
