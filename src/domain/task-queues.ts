/**
 * The task queues of a deployment. Workflows and steps that need only Postgres use the one that the setting names. Steps
 * that call others have separate queues, so that nothing waits behind a party that hangs.
 */

/** For calls of agents. */
export function agentTaskQueue(taskQueue: string): string {
  return `${taskQueue}-agents`;
}

/** For calls of webhook endpoints. */
export function webhookTaskQueue(taskQueue: string): string {
  return `${taskQueue}-webhooks`;
}

/** For steps that call Stripe. Temporal limits how many of them start per second, over all workers. */
export function stripeTaskQueue(taskQueue: string): string {
  return `${taskQueue}-stripe`;
}
