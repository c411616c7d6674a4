/** Starts the workflow of a webhook endpoint, or tells it to look at its rows. */
import { wireId } from '../domain/ids.ts';
import { workflowIdIn } from '../domain/task-queues.ts';
import { webhookEndpointChanged } from '../../workflows/messages.ts';
import type { webhookEndpoint } from '../../workflows/webhook-endpoint.ts';
import type { Deployed, TemporalClient } from './client.ts';
import { runsOn, inTime } from './starts.ts';

export function webhookWorkflowId(temporal: Deployed, endpointId: string): string {
  return workflowIdIn(temporal, 'webhooks', wireId('webhookEndpoint', endpointId));
}

/** A workflow that has ended starts again: its endpoint may have been enabled. One without an endpoint ends at once. */
export async function reportWebhookEndpoint(temporal: TemporalClient, id: string): Promise<void> {
  const endpointId = wireId('webhookEndpoint', id);
  await inTime(temporal, (workflow) =>
    workflow.signalWithStart<typeof webhookEndpoint>('webhookEndpoint', {
      workflowId: webhookWorkflowId(temporal, id),
      ...runsOn(temporal),
      args: [{ endpointId }],
      signal: webhookEndpointChanged,
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      staticSummary: `Events for ${endpointId}`,
    }),
  );
}
